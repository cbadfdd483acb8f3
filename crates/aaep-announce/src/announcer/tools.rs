//! Many small tools in one sentence: "Read 5 files."

use crate::english::events;
use crate::words::own;

/// Waiting tool calls of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingTools {
    kind: ToolKind,
    /// The words for a single call or its result.
    words: String,
    /// How many calls were not announced yet. A result alone does not count.
    count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolKind {
    Read,
    Search,
    List,
    Edit,
    Fetch,
    /// Any other tool, with its name.
    Named(String),
}

impl WaitingTools {
    /// One call of a tool, and its words.
    pub(super) fn one(tool: &str, words: String) -> Self {
        WaitingTools { kind: kind(tool), words, count: 1 }
    }

    /// The result of a tool, and its words.
    pub(super) fn result(tool: &str, words: String) -> Self {
        WaitingTools { kind: kind(tool), words, count: 0 }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the calls of another one, if it is of the same kind.
    pub(super) fn merge(&mut self, other: &WaitingTools) -> bool {
        if self.kind != other.kind {
            return false;
        }
        self.count = self.count.saturating_add(other.count);
        // For a single call, only the newest words count.
        self.words.clone_from(&other.words);
        true
    }

    pub(super) fn said(&self) -> String {
        let count = self.count;
        let said = match &self.kind {
            _ if count <= 1 => return self.words.clone(),
            ToolKind::Read => events::read(count),
            ToolKind::Search => events::searched(count),
            ToolKind::List => events::listed(count),
            ToolKind::Edit => events::edited(count),
            ToolKind::Fetch => events::fetched(count),
            ToolKind::Named(name) => events::used(name, count),
        };
        own(&said)
    }
}

/// The kind of a tool, guessed from the words in its name.
fn kind(tool: &str) -> ToolKind {
    let words = words_of(tool);
    let first = words.first().map_or("", String::as_str);
    let has = |word: &str| words.iter().any(|it| it == word);
    let is_about_files = words.len() == 1 || has("file") || has("files");
    match first {
        "read" | "view" | "cat" if is_about_files => ToolKind::Read,
        "grep" | "search" | "find" | "glob" => ToolKind::Search,
        "ls" => ToolKind::List,
        "list" if has("dir") || has("directory") || has("folder") || has("files") => ToolKind::List,
        "edit" | "write" | "patch" if is_about_files => ToolKind::Edit,
        "fetch" if words.len() == 1 || has("page") || has("url") => ToolKind::Fetch,
        "web" if has("fetch") => ToolKind::Fetch,
        "web" if has("search") => ToolKind::Search,
        _ => ToolKind::Named(tool.to_owned()),
    }
}

/// The words of a name such as `read_file`, `read-file` or `ReadFile`, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_new = true;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            is_new = true;
            continue;
        }
        is_new |= c.is_ascii_uppercase();
        match words.last_mut() {
            Some(word) if !is_new => word.push(c),
            _ => words.push(c.to_ascii_lowercase().to_string()),
        }
        is_new = false;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::without_own_marks;

    #[test]
    fn many_small_tools_are_one_sentence() {
        for (tool, said) in [
            ("read_file", "Read 2 files."),
            ("Read", "Read 2 files."),
            ("ReadFile", "Read 2 files."),
            ("Grep", "Searched 2 times."),
            ("list_directory", "Listed 2 folders."),
            ("Edit", "Edited 2 files."),
            ("WebFetch", "Fetched 2 pages."),
            ("read_mail", "Used read_mail 2 times."),
            ("exec_command", "Used exec_command 2 times."),
        ] {
            let mut tools = WaitingTools::one(tool, "x".to_owned());
            assert_eq!(tools.said(), "x");
            assert!(tools.merge(&WaitingTools::one(tool, "y".to_owned())));
            assert_eq!(without_own_marks(&tools.said()), said);
        }
        let mut one = WaitingTools::one("Read", "Reading a.".to_owned());
        assert!(one.merge(&WaitingTools::result("Read", "Read a, 3 lines.".to_owned())));
        assert_eq!(one.said(), "Read a, 3 lines.");
        assert!(one.merge(&WaitingTools::one("Read", "Reading b.".to_owned())));
        assert_eq!(without_own_marks(&one.said()), "Read 2 files.");
        let mut result = WaitingTools::result("Read", "Read a, 3 lines.".to_owned());
        assert!(result.merge(&WaitingTools::one("Read", "Reading b.".to_owned())));
        assert_eq!(result.said(), "Reading b.");
        assert!(
            !WaitingTools::one("a", String::new()).merge(&WaitingTools::one("b", String::new()))
        );
    }
}
