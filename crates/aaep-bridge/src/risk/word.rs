//! The words of a shell command, as far as they are known before it runs.

use tree_sitter::Node;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandWord {
    /// What is known of it: all of it, or how it begins.
    pub(super) text: String,
    /// Whether nothing of it depends on what happens when it runs.
    pub(super) is_whole: bool,
}

impl CommandWord {
    pub(super) fn whole(text: impl Into<String>) -> Self {
        CommandWord { text: text.into(), is_whole: true }
    }

    /// The word, if all of it is known.
    pub(super) fn literal(&self) -> Option<&str> {
        self.is_whole.then_some(self.text.as_str())
    }

    /// Whether it is an option, or could be one.
    pub(super) fn may_be_option(&self) -> bool {
        self.text.starts_with('-') || (self.text.is_empty() && !self.is_whole)
    }

    /// Whether it is this option, or could be. Programs take short options together and shorten long ones.
    pub(super) fn may_be(&self, option: &str) -> bool {
        if !self.is_whole && self.text.is_empty() {
            return true;
        }
        let name = self.text.split('=').next().unwrap_or_default();
        if name.is_empty() || !name.starts_with('-') || name == "-" || name == "--" {
            return false;
        }
        let is_shortened = name.starts_with("--") && option.starts_with(name);
        let is_among_short = match option.as_bytes() {
            [b'-', letter] => !name.starts_with("--") && name.as_bytes()[1..].contains(letter),
            _ => false,
        };
        name == option || is_shortened || is_among_short
    }
}

/// Reads a word from its node. The work is bounded by the length of the word: nested commands are left to the walk
/// over all nodes.
pub(super) fn read_word(node: Node<'_>, source: &str) -> CommandWord {
    let mut word = CommandWord::whole("");
    append(node, source, &mut word);
    word
}

fn append(node: Node<'_>, source: &str, word: &mut CommandWord) {
    if !word.is_whole {
        return;
    }
    let text = source.get(node.byte_range()).unwrap_or_default();
    match node.kind() {
        "word" | "number" | "extglob_pattern" | "test_operator" => append_bare(text, word),
        "raw_string" => word.text.push_str(text.trim_matches('\'')),
        "string" => append_string(node, source, word),
        "concatenation" | "command_name" => {
            let mut end = node.start_byte();
            for child in children(node) {
                // What lies between two parts is not part of a word as we understand it.
                word.is_whole &= child.start_byte() == end;
                end = child.end_byte();
                append(child, source, word);
            }
        }
        _ => word.is_whole = false,
    }
}

/// The children of a node, in order.
pub(super) fn children(node: Node<'_>) -> impl DoubleEndedIterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |index| node.child(index))
}

/// A text in double quotes: whole only if nothing in it is expanded.
fn append_string(node: Node<'_>, source: &str, word: &mut CommandWord) {
    let inner = node.start_byte() + 1..node.end_byte().saturating_sub(1);
    let mut characters = source.get(inner).unwrap_or_default().chars();
    while let Some(character) = characters.next() {
        match character {
            '$' | '`' => {
                word.is_whole = false;
                return;
            }
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(escaped @ ('$' | '`' | '"' | '\\')) => word.text.push(escaped),
                Some(other) => word.text.extend(['\\', other]),
            },
            character => word.text.push(character),
        }
    }
}

/// A text without quotes. A brace with alternatives becomes several words, which are not known here.
fn append_bare(text: &str, word: &mut CommandWord) {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(escaped) => word.text.push(escaped),
            },
            '{' if text.contains(',') || text.contains("..") => {
                word.is_whole = false;
                return;
            }
            '$' | '`' => {
                word.is_whole = false;
                return;
            }
            character => word.text.push(character),
        }
    }
}
