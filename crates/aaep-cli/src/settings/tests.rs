//! Settings: which are in effect, where they come from, and what is reported about invalid ones.

use super::keys::template;
use super::*;

fn nothing(_: &str) -> Option<String> {
    None
}

fn of(text: &str) -> Result<EffectiveSettings, Vec<SettingProblem>> {
    effective(text, nothing, &SettingsFlags::default())
}

fn wrong(text: &str) -> (Option<usize>, String) {
    let all = of(text).expect_err("something is wrong");
    let first = all.into_iter().next().expect("what is wrong");
    (first.line, first.what)
}

#[test]
fn an_empty_file_is_all_defaults() {
    let effective = of("").expect("settings");
    assert_eq!(effective.settings, UserSettings::default());
    assert!(KEYS.iter().all(|key| effective.origin(key) == SettingOrigin::Default));
    assert!(effective.settings.lines.on && !effective.settings.speech.on);
}

#[test]
fn a_file_that_was_begun_for_the_person_sets_nothing() {
    assert_eq!(of(&template()).expect("settings").settings, UserSettings::default());
}

#[test]
fn every_setting_is_in_the_list_and_every_example_can_be_used() {
    // Uncomments every line of the template.
    let text: String = template()
        .lines()
        .map(|line| line.strip_prefix('#').filter(|it| !it.starts_with(' ')).unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n");
    let effective = of(&text).expect("settings");
    assert!(KEYS.iter().all(|key| effective.origin(key) == SettingOrigin::File));
    assert_eq!(effective.settings.rules.len(), 1);
    let written = Table::try_from(&effective.settings).expect("a table");
    let mut known: Vec<(String, String)> = Vec::new();
    for (table, keys) in written.iter().filter(|(table, _)| *table != "rules") {
        let keys = keys.as_table().expect("a table").keys();
        known.extend(keys.map(|key| (table.clone(), key.clone())));
    }
    let mut listed: Vec<(String, String)> =
        KEYS.iter().map(|key| (key.table.to_owned(), key.name.to_owned())).collect();
    known.sort();
    listed.sort();
    assert_eq!(known, listed);
}

#[test]
fn defaults_in_the_list_are_the_defaults() {
    let written = Table::try_from(UserSettings::default()).expect("a table");
    for key in KEYS {
        let found = written.get(key.table).and_then(|it| it.get(key.name));
        match key.value {
            keys::SettingValue::Default(text) => {
                let value: Table = toml::from_str(&format!("it = {text}")).expect("a value");
                assert_eq!(found, value.get("it"), "{}.{}", key.table, key.name);
            }
            keys::SettingValue::Example(..) => {
                let is_none = found.is_none_or(|it| it.as_table().is_some_and(Table::is_empty));
                assert!(is_none, "{}.{}", key.table, key.name);
            }
        }
    }
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let text = "[listen]\nprofile = \"quiet\"\nhub = \"unix:\"\nwords_per_minute = 100\n";
    let variable = |name: &str| match name {
        "AAEP_PROFILE" => Some("braille".to_owned()),
        "AAEP_HUB" => Some("http://127.0.0.1:1".to_owned()),
        "AAEP_LANGUAGES" => Some("fr, en-GB".to_owned()),
        _ => None,
    };
    let flags = SettingsFlags { profile: Some("debug".to_owned()), ..SettingsFlags::default() };
    let found = effective(text, variable, &flags).expect("settings");
    let listen = &found.settings.listen;
    assert_eq!(listen.profile, Profile::Debug);
    let addresses = listen.hub.as_ref().map(HubAddresses::list);
    assert_eq!(addresses, Some(&["http://127.0.0.1:1".to_owned()][..]));
    assert_eq!(listen.words_per_minute, Some(100));
    assert_eq!(listen.language_tags().map(|it| it.len()), Some(2));
    let origin = |name| {
        let key = KEYS.iter().find(|key| key.table == "listen" && key.name == name);
        found.origin(key.expect("a setting"))
    };
    assert_eq!(origin("profile"), SettingOrigin::Flag("--profile"));
    assert_eq!(origin("hub"), SettingOrigin::Environment("AAEP_HUB"));
    assert_eq!(origin("words_per_minute"), SettingOrigin::File);
}

#[test]
fn what_comes_from_outside_is_named_when_it_cannot_be_used() {
    let variable = |name: &str| (name == "AAEP_WORDS_PER_MINUTE").then(|| "fast\u{1b}".to_owned());
    let all = effective("", variable, &SettingsFlags::default()).expect_err("no number");
    assert!(all[0].what.contains("AAEP_WORDS_PER_MINUTE"), "{}", all[0].what);
    assert!(!all[0].what.contains('\u{1b}'), "{}", all[0].what);
    let flags = SettingsFlags { profile: Some("loud".to_owned()), ..SettingsFlags::default() };
    let all = effective("", nothing, &flags).expect_err("no profile");
    assert!(all[0].what.contains("--profile"), "{}", all[0].what);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, part) in [
        ("[listen]\nprofil = \"quiet\"", 2, "profil"),
        ("\n[lissen]\n", 2, "lissen"),
        ("[listen]\nprofile = \"loud\"", 2, "loud"),
        ("[listen]\n\nwords_per_minute = 1", 3, "20 to 2000"),
        ("[listen]\nwords_per_minute = -1", 2, ""),
        ("[listen]\nlanguages = [\"en\", \"no language\"]", 2, "no language"),
        ("[listen]\nlanguages = []", 2, "1 to 16"),
        ("[listen]\nhub = \"nowhere\"", 2, "http://127.0.0.1:7117"),
        ("[listen]\naddress = \"unix:\"", 2, "address is called hub now"),
        ("[speech]\non = true\nrate = 101", 3, "-100 to 100"),
        ("[speech]\nvoice = \"a\\r\\nSET SELF\"", 2, "plain words"),
        ("[braille]\ntables = { en = \"../x\" }", 2, "liblouis"),
        ("[braille]\ntables = { en = \"-x\" }", 2, "liblouis"),
        ("[lines]\nbell = \"yes\"", 2, ""),
        ("[listen", 1, ""),
        (
            "[[rules]]\nname = \"a\"\nanswer = \"reject\"\n[[rules]]\nname = \"b\"\nrisk = \"high\"\nanswer = \"accept\"",
            6,
            "never accepts",
        ),
        ("[[rules]]\nname = \"a\"\nanswer = \"accept\"", 3, "Add agent or tool"),
        ("[[rules]]\nname = \"a\"\nanswer = \"maybe\"", 3, "maybe"),
    ] {
        let (found, what) = wrong(text);
        assert_eq!(found, Some(line), "{text}: {what}");
        assert!(what.contains(part), "{what}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_nothing_of_it_steers_a_terminal() {
    let text =
        "[listen]\nlanguages = [\"\\u001b[2J\"]\nwords_per_minute = 1\n[speech]\npitch = -128\n";
    let all = of(text).expect_err("wrong");
    assert_eq!(all.iter().map(|it| it.line).collect::<Vec<_>>(), [Some(2), Some(3), Some(5)]);
    assert!(all.iter().all(|it| !it.what.contains('\u{1b}')));
}
