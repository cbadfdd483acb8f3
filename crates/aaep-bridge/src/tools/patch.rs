//! Patches in the form that Codex applies: which files they change, and how much.
//!
//! A text that does not have this form to the last line is not taken for a patch.

use crate::risk::AgentAction;
use crate::tool_words::patch_words;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

/// The most files of one patch.
const MAX_FILES: usize = 32;

/// The patch in a command that does nothing but apply it, given as a text in which the shell changes nothing.
pub(super) fn in_command(command: &str) -> Option<&str> {
    let rest = command.trim().strip_prefix("apply_patch <<")?;
    let (mark, rest) = rest.split_once('\n')?;
    // Without quotes, the shell would run what stands in the text.
    let word = mark.strip_prefix('\'').and_then(|it| it.strip_suffix('\''))?;
    let is_word =
        !word.is_empty() && word.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    let patch = rest.strip_suffix(word).filter(|_| is_word)?;
    // The text ends at the first line with the word, and nothing may follow it.
    let ends_once = patch.ends_with('\n') && !patch.lines().any(|it| it == word);
    ends_once.then_some(patch)
}

/// What applying the patch does.
pub(super) fn actions(patch: &str) -> Option<Vec<AgentAction>> {
    let files = files(patch)?;
    let mut actions = Vec::new();
    for file in files {
        actions.push(match file.kind {
            "Delete" => AgentAction::DeletePath(file.path.to_owned()),
            _ => AgentAction::WritePath(file.path.to_owned()),
        });
        if let Some(to) = file.moved_to {
            actions.push(AgentAction::WritePath(to.to_owned()));
        }
    }
    Some(actions)
}

/// How many lines the patch adds to a file and removes from it, in words.
pub(super) fn counts_of(text: &str, path: &str) -> Option<String> {
    let files = files(text)?;
    let moved = files.iter().find(|it| it.moved_to == Some(path));
    if let Some(from) = moved {
        return Some(format!("it is {} under a new name", from.path));
    }
    let file = files.iter().find(|it| it.path == path)?;
    Some(match file.moved_to {
        Some(to) => format!("{}, and it is then named {to}", patch_words(file.counts)),
        None => patch_words(file.counts),
    })
}

/// One file of a patch.
struct PatchedFile<'p> {
    /// `Add`, `Update` or `Delete`.
    kind: &'p str,
    path: &'p str,
    moved_to: Option<&'p str>,
    counts: (u64, u64),
}

fn files(text: &str) -> Option<Vec<PatchedFile<'_>>> {
    let body = text.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
    let mut files: Vec<PatchedFile<'_>> = Vec::new();
    for line in body.lines().skip(1) {
        if let Some(heading) = line.strip_prefix("*** ") {
            if heading == "End of File" {
                continue;
            }
            let (words, path) = heading.split_once(": ")?;
            let path = path.trim();
            if words == "Move to" {
                files.last_mut()?.moved_to = Some(path);
                continue;
            }
            let kind = words.strip_suffix(" File")?;
            if !matches!(kind, "Add" | "Update" | "Delete") {
                return None;
            }
            files.push(PatchedFile { kind, path, moved_to: None, counts: (0, 0) });
            continue;
        }
        // A heading that is indented could count for the agent.
        if line.trim_start().starts_with("*** ") {
            return None;
        }
        let file = files.last_mut()?;
        match line.as_bytes().first() {
            Some(b'+') => file.counts.0 += 1,
            Some(b'-') => file.counts.1 += 1,
            _ => {}
        }
    }
    let fits = !files.is_empty() && files.len() <= MAX_FILES;
    (fits && files.iter().all(|it| !it.path.is_empty())).then_some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-a\n+b\n*** Delete File: ../x\n*** End Patch\n";

    fn command(mark: &str, patch: &str, rest: &str) -> String {
        format!("apply_patch <<{mark}\n{patch}EOF{rest}")
    }

    #[test]
    fn a_patch_is_what_it_does_to_files() {
        let text = command("'EOF'", PATCH, "\n");
        let found = in_command(&text).and_then(actions).expect("a patch");
        assert_eq!(
            found,
            [
                AgentAction::WritePath("notes.txt".to_owned()),
                AgentAction::DeletePath("../x".to_owned())
            ]
        );
        assert_eq!(counts_of(PATCH, "notes.txt").as_deref(), Some("1 line added, 1 line removed"));
        let moved = "*** Begin Patch\n*** Update File: a\n*** Move to: /etc/b\n*** End Patch";
        assert_eq!(actions(moved).expect("a patch").len(), 2);
        assert!(counts_of(moved, "a").expect("words").contains("/etc/b"));
    }

    #[test]
    fn a_command_that_does_more_is_not_a_patch() {
        let twice = format!("{PATCH}EOF\nrm -rf .\n{PATCH}");
        for text in [
            command("EOF", PATCH, ""),
            command("'EOF'", PATCH, "\nrm -rf ."),
            command("'EOF'", PATCH, "; rm -rf ."),
            command("'EOF' && rm -rf .", PATCH, ""),
            command("'EOF'", &twice, ""),
            command("'EOF'", "rm -rf .\n", ""),
            command("'EOF'", "*** Begin Patch\n*** Run File: x\n*** End Patch\n", ""),
            command("'EOF'", "*** Begin Patch\n*** End Patch\n", ""),
            command("'EOF'", &PATCH.replace("*** Delete", " *** Delete"), ""),
            "apply_patch".to_owned(),
            String::new(),
        ] {
            assert_eq!(in_command(&text).and_then(actions), None, "{text}");
        }
    }
}
