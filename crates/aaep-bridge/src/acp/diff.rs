//! A change of a file in words: which file, how many lines, and the words themselves if they are few.

use aaep::ToolName;
use aaep::extension::action_digest;
use serde_json::{Value, json};

use crate::event::count;
use crate::tool_words::{patch_words, within};

/// How much of a replaced text is said in a question. Longer ones are told by their lines.
const MAX_TOLD_CHARS: usize = 400;

/// The most files of one tool call.
const MAX_FILES: usize = 32;

/// The longest path that is kept.
const MAX_PATH_CHARS: usize = 4096;

/// One changed file. The texts themselves are not kept unless they are short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AcpFileDiff {
    pub(super) path: String,
    is_new: bool,
    /// Whether the file is deleted. No text at all stands for that; the protocol has no form for it.
    pub(super) is_deleted: bool,
    lines: (u64, u64),
    /// The replaced words and the new ones, without the lines that stay.
    words: Option<(String, String)>,
    /// What exactly changes.
    pub(super) digest: String,
}

impl AcpFileDiff {
    /// The changed files in the content of a tool call. `None` if one of them cannot be kept.
    pub(super) fn list(content: &Value) -> Option<Vec<AcpFileDiff>> {
        let diffs = content.as_array()?.iter().filter(|it| it["type"] == "diff");
        let diffs: Option<Vec<AcpFileDiff>> = diffs.map(AcpFileDiff::read).collect();
        diffs.filter(|it| it.len() <= MAX_FILES)
    }

    fn read(diff: &Value) -> Option<Self> {
        let path = diff["path"].as_str().filter(|it| it.chars().count() <= MAX_PATH_CHARS)?;
        let (old, new) = (diff["oldText"].as_str(), diff["newText"].as_str().unwrap_or_default());
        let (removed, added) = changed_lines(old.unwrap_or_default(), new);
        let words = (removed.join("\n"), added.join("\n"));
        let is_short = words.0.chars().count() + words.1.chars().count() <= MAX_TOLD_CHARS;
        let name = ToolName::parse("diff").ok()?;
        let digest = action_digest(&name, &json!({ "old": old, "new": new })).ok()?;
        Some(AcpFileDiff {
            path: path.to_owned(),
            is_new: old.is_none(),
            is_deleted: diff.get("newText").is_some_and(Value::is_null),
            lines: (added.len() as u64, removed.len() as u64),
            words: is_short.then_some(words),
            digest: digest.as_str().to_owned(),
        })
    }

    /// What the person is asked.
    pub(super) fn question(&self, project: &str) -> String {
        let path = within(&self.path, project);
        match &self.words {
            _ if self.is_deleted => format!("Delete {path}."),
            _ if self.is_new => format!("Create {path}, {}.", count(self.lines.0, "line")),
            Some((old, new)) if old.is_empty() && !new.is_empty() => {
                format!("Change {path}: add “{new}”.")
            }
            Some((old, new)) if new.is_empty() && !old.is_empty() => {
                format!("Change {path}: remove “{old}”.")
            }
            Some((old, new)) if !old.is_empty() => {
                format!("Change {path}: replace “{old}” by “{new}”.")
            }
            _ => format!("Change {path}: {}.", patch_words(self.lines)),
        }
    }

    /// What came of it.
    pub(super) fn result(&self, project: &str) -> String {
        let path = within(&self.path, project);
        if self.is_deleted {
            format!("{path} was deleted.")
        } else if self.is_new {
            format!("{path} was created, {}.", count(self.lines.0, "line"))
        } else {
            format!("{path}: {}.", patch_words(self.lines))
        }
    }
}

/// The lines that differ, without what both texts begin and end with.
fn changed_lines<'t>(old: &'t str, new: &'t str) -> (Vec<&'t str>, Vec<&'t str>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    (old[..old.len() - end].to_vec(), new[..new.len() - end].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(old: Option<&str>, new: &str) -> String {
        let content =
            json!([{ "type": "diff", "path": "/p/a.txt", "oldText": old, "newText": new }]);
        AcpFileDiff::list(&content).expect("a diff")[0].question("/p")
    }

    #[test]
    fn a_change_is_told_by_its_words_or_by_its_lines() {
        let whole = question(Some("one\ntwo\nthree\n"), "one\n2\nthree\n");
        assert_eq!(whole, "Change a.txt: replace “two” by “2”.");
        assert_eq!(question(Some("one\n"), "one\ntwo\n"), "Change a.txt: add “two”.");
        assert_eq!(question(Some("one\ntwo\n"), "one\n"), "Change a.txt: remove “two”.");
        assert_eq!(question(None, "one\ntwo\n"), "Create a.txt, 2 lines.");
        let long = "x\n".repeat(500);
        assert_eq!(question(Some("y"), &long), "Change a.txt: 500 lines added, 1 line removed.");
    }

    #[test]
    fn changes_that_sound_the_same_have_different_digests() {
        let digest = |new: &str| {
            let content = json!([{ "type": "diff", "path": "a", "oldText": "y", "newText": new.repeat(500) }]);
            AcpFileDiff::list(&content).expect("a diff")[0].digest.clone()
        };
        assert_ne!(digest("x\n"), digest("z\n"));
    }
}
