//! The file that keeps the question numbers.

use super::numbers::AskNumbers;
use crate::english::failures;
use crate::kept::{KeptFile, KeptState};

pub(crate) type NumbersFile = KeptFile<AskNumbers>;

impl KeptState for AskNumbers {
    const FILE: &'static str = "questions.json";
    const CALLED: &'static str = failures::NUMBERS_FILE;
    // The numbers that the person has heard no longer refer to anything, so that nothing is answered by mistake.
    const WITHOUT_IT: &'static str = failures::NUMBERS_BEGIN_AGAIN;

    fn is_sound(&self) -> bool {
        AskNumbers::is_sound(self)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use serde_json::json;

    use super::*;
    use crate::attention::asked::tests::asked;

    fn give(file: &NumbersFile, token: &str) -> Option<u16> {
        let asked = asked(token, &json!({}));
        file.change(|numbers| numbers.give(1_790_000_000, "unix:", &asked)).expect("changed")
    }

    #[test]
    fn numbers_are_kept_from_one_run_to_the_next_for_one_person_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/questions.json");
        assert_eq!(give(&NumbersFile::at(path.clone()), "rpl_a"), Some(1));
        assert_eq!(give(&NumbersFile::at(path.clone()), "rpl_b"), Some(2));
        assert_eq!(give(&NumbersFile::at(path.clone()), "rpl_a"), Some(1));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn two_programs_at_once_never_give_one_number_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("questions.json");
        let give_ten = |name: &'static str| {
            let file = NumbersFile::at(path.clone());
            move || (0..10).filter_map(|at| give(&file, &format!("rpl_{name}{at}"))).collect()
        };
        let threads: Vec<thread::JoinHandle<Vec<u16>>> =
            ["a", "b", "c", "d"].map(|name| thread::spawn(give_ten(name))).into_iter().collect();
        let mut given: Vec<u16> =
            threads.into_iter().flat_map(|it| it.join().expect("no panic")).collect();
        given.sort_unstable();
        assert_eq!(given, (1..=40).collect::<Vec<u16>>());
    }

    #[test]
    fn a_broken_file_is_set_aside_and_never_believed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("questions.json");
        let file = NumbersFile::at(path.clone());
        give(&file, "rpl_a");
        let whole = fs::read_to_string(&path).expect("text");
        for broken in ["", "{", "[]", &whole[..whole.len() / 2], &whole.replace("rpl_a", "../x")] {
            fs::write(&path, broken).expect("written");
            assert_eq!(file.look().expect("numbers"), AskNumbers::default(), "{broken}");
            let aside = folder.path().join("questions.json.broken");
            assert_eq!(fs::read_to_string(aside).expect("set aside"), broken);
            assert!(!path.exists());
        }
        assert_eq!(give(&file, "rpl_b"), Some(1));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_or_that_is_a_link_is_not_believed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("questions.json");
        let file = NumbersFile::at(path.clone());
        give(&file, "rpl_a");
        let open = fs::Permissions::from_mode(0o666);
        fs::set_permissions(&path, open).expect("permissions");
        assert_eq!(file.look().expect("numbers"), AskNumbers::default());
        give(&file, "rpl_a");
        let elsewhere = folder.path().join("elsewhere.json");
        fs::rename(&path, &elsewhere).expect("moved");
        symlink(&elsewhere, &path).expect("a link");
        assert_eq!(file.look().expect("numbers"), AskNumbers::default());
        assert!(elsewhere.exists(), "what the link names stays as it is");
    }
}
