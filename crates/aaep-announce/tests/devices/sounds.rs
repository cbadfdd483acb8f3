//! Sounds, with players that are small programs of the system.

use std::fs;
use std::path::{Path, PathBuf};

use aaep_announce::device::sounds::{Settings, start};
use aaep_announce::{DeviceReport, Earcon, Order, Weight};

use crate::patience::{Reports, utterance, wait_until};

/// A player that does this; `$1` is the sound file.
fn player(script: &str) -> Vec<String> {
    ["sh", "-c", script, "player"].map(str::to_owned).to_vec()
}

fn played(folder: &Path, count: usize) -> Vec<Vec<u8>> {
    let files = || -> Vec<PathBuf> {
        let all = fs::read_dir(folder).expect("a folder").flatten().map(|it| it.path());
        let mut files: Vec<PathBuf> =
            all.filter(|it| it.extension().is_some_and(|it| it == "played")).collect();
        files.sort();
        files
    };
    wait_until("the sounds were played", || (files().len() == count).then_some(()));
    files().iter().map(|file| fs::read(file).expect("a file")).collect()
}

#[test]
fn each_sound_reaches_the_first_player_that_is_there_as_its_own_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().display();
    // Written under another name first, so that half a file is never looked at.
    let copy = format!(
        "n=$(ls {at}/*.played 2>/dev/null | wc -l); cp \"$1\" {at}/new && mv {at}/new {at}/$n.played"
    );
    let players = vec![vec!["no-such-player".to_owned()], player(&copy), vec!["false".to_owned()]];
    let own = folder.path().join("own.wav");
    fs::write(&own, "my own sound").expect("a file");
    let settings = Settings { players, error: Some(own), ..Settings::default() };
    let (sender, mut reports) = Reports::new();
    let device = start(settings, sender).expect("it starts");
    assert_eq!(reports.next(), DeviceReport::Works);
    for (count, earcon) in (1..).zip([Earcon::NeedsYou, Earcon::Done, Earcon::Error]) {
        device.tell(Order::Sound(earcon)).expect("it takes orders");
        played(folder.path(), count);
    }
    let files = played(folder.path(), 3);
    assert!(files[..2].iter().all(|file| file.starts_with(b"RIFF")) && files[0] != files[1]);
    assert_eq!(files[2], b"my own sound");
}

#[test]
fn a_machine_without_a_player_is_told_once_and_nothing_waits() {
    let settings =
        Settings { players: vec![vec!["no-such-player".to_owned()]], ..Settings::default() };
    let (sender, mut reports) = Reports::new();
    let device = start(settings, sender).expect("it starts");
    for _ in 0..3 {
        device.tell(Order::Sound(Earcon::Done)).expect("it takes orders");
    }
    device.tell(Order::Say(utterance(1, Weight::Normal, "Words."))).expect("it takes orders");
    reports.until_is(&DeviceReport::Cut(1));
    assert!(
        matches!(reports.seen(), [DeviceReport::Trouble(why), DeviceReport::Cut(1)] if why.contains("apt-get install")),
        "{:?}",
        reports.seen()
    );
}

#[test]
fn a_player_that_fails_is_told_once_until_it_plays_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let marker = folder.path().join("works");
    let players = vec![player(&format!("test -e {}", marker.display()))];
    let (sender, mut reports) = Reports::new();
    let device = start(Settings { players, ..Settings::default() }, sender).expect("it starts");
    assert_eq!(reports.next(), DeviceReport::Works);
    device.tell(Order::Sound(Earcon::Error)).expect("it takes orders");
    assert!(matches!(reports.next(), DeviceReport::Trouble(_)));
    fs::write(&marker, "").expect("a file");
    device.tell(Order::Sound(Earcon::Error)).expect("it takes orders");
    assert_eq!(reports.next(), DeviceReport::Works);
}

#[test]
fn a_player_that_hangs_is_ended_by_the_next_sound() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let script = format!("echo $$ >> {}; exec sleep 1000", log.display());
    let players = vec![player(&script)];
    let (sender, mut reports) = Reports::new();
    let device = start(Settings { players, ..Settings::default() }, sender).expect("it starts");
    assert_eq!(reports.next(), DeviceReport::Works);
    let runs = || {
        fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for count in 1..=3 {
        device.tell(Order::Sound(Earcon::NeedsYou)).expect("it takes orders");
        wait_until("the player runs", || (runs().len() == count).then_some(()));
    }
    drop(device);
    for number in runs() {
        let process = Path::new("/proc").join(number);
        wait_until("the player has ended", || (!process.exists()).then_some(()));
    }
}
