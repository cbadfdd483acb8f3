//! Finds claims of success in an agent's text that contradict what really happened.
//!
//! Sentences are judged one by one: a sentence that denies success claims nothing, whatever the others say. A claim
//! contradicts a fact only if both are about the same thing.

/// Words that claim success of the topic of the sentence.
const SUCCESS: &[&str] = &[
    "done",
    "completed",
    "complete",
    "completes",
    "finished",
    "success",
    "successful",
    "successfully",
    "succeeded",
    "succeeds",
    "works",
    "worked",
    "working",
    "pass",
    "passes",
    "passed",
    "passing",
    "green",
    "ready",
    "fixed",
    "resolved",
];

/// Words for the same action: first those that claim it, then those that only name it. A claim of an action is about
/// every fact that has any of its words.
const ACTIONS: &[&[&str]] = &[
    &[
        "deleted", "removed", "gone", "cleaned", "erased", "delete", "remove", "rm", "erase",
        "clean",
    ],
    &["sent", "mailed", "send", "mail", "post", "posted"],
    &["pushed", "push"],
    &["deployed", "released", "published", "deploy", "release", "publish"],
    &["installed", "install"],
    &["created", "written", "saved", "added", "create", "write", "save", "add"],
    &["updated", "changed", "edited", "update", "change", "edit", "patch"],
    &["moved", "renamed", "move", "mv", "rename"],
    &["merged", "merge"],
    &["committed", "commit"],
    &["built", "compiled", "build", "compile", "make"],
    &["paid", "bought", "pay", "buy", "order", "ordered"],
    &["tested", "test", "tests"],
];

/// How many words at the beginning of each action claim it. The others only name it.
const CLAIMING: &[usize] = &[5, 2, 1, 3, 1, 4, 3, 2, 1, 1, 2, 2, 1];

/// Words that deny a claim.
const DENIALS: &[&str] = &[
    "not",
    "no",
    "nothing",
    "none",
    "never",
    "nobody",
    "without",
    "failed",
    "fail",
    "fails",
    "failing",
    "unable",
    "denied",
    "refused",
    "rejected",
    "declined",
    "permission",
    "cannot",
    "can't",
    "couldn't",
    "didn't",
    "doesn't",
    "don't",
    "wasn't",
    "weren't",
    "isn't",
    "aren't",
    "won't",
    "blocked",
    "skipped",
    "unless",
    "would",
    "should",
    "if",
];

/// Words that say nothing about the topic of a sentence.
const EMPTY: &[&str] = &[
    "all",
    "and",
    "any",
    "are",
    "been",
    "command",
    "everything",
    "file",
    "files",
    "folder",
    "for",
    "from",
    "has",
    "have",
    "his",
    "its",
    "now",
    "run",
    "running",
    "that",
    "the",
    "them",
    "they",
    "this",
    "tool",
    "was",
    "were",
    "with",
    "you",
    "your",
];

/// Whether a text claims success of the fact with these words. `is_general` says whether a claim that names nothing,
/// such as "Done.", applies to this fact. In a language other than English, every text may be a claim.
pub(super) fn claims_success_of(
    text: &str,
    fact: &str,
    is_general: bool,
    is_english: bool,
) -> bool {
    if !is_english {
        return is_general;
    }
    let fact = words_of(fact);
    let ends = |c: char| matches!(c, '.' | '!' | '?' | ';' | '\n');
    text.split(ends).any(|sentence| is_claim(&words_of(sentence), &fact, is_general))
}

fn is_claim(sentence: &[String], fact: &[String], is_general: bool) -> bool {
    let has = |list: &[&str]| sentence.iter().any(|it| list.contains(&it.as_str()));
    if has(DENIALS) {
        return false;
    }
    let is_same_action = ACTIONS.iter().zip(CLAIMING).any(|(action, claiming)| {
        has(action.get(..*claiming).unwrap_or_default())
            && fact.iter().any(|it| action.contains(&it.as_str()))
    });
    if is_same_action {
        return true;
    }
    if !has(SUCCESS) {
        return false;
    }
    let says_something = |it: &&String| {
        let word = it.as_str();
        it.len() > 2 && !SUCCESS.contains(&word) && !EMPTY.contains(&word)
    };
    let mut topics = sentence.iter().filter(says_something).peekable();
    if topics.peek().is_none() {
        return is_general;
    }
    topics.any(|it| fact.iter().filter(says_something).any(|fact| is_same_word(it, fact)))
}

/// Whether two words are forms of the same word: "test" and "tests", "picture" and "pictures".
fn is_same_word(one: &str, other: &str) -> bool {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let longer = one.len().max(other.len());
    one == other || same >= 4 && longer - same <= 3
}

/// The words of a text in lower case. A name such as `send_mail` has two.
fn words_of(text: &str) -> Vec<String> {
    let text = text.replace('’', "'");
    text.split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|it| !it.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str, fact: &str) -> bool {
        claims_success_of(text, fact, true, true)
    }

    #[test]
    fn a_claim_is_told_from_an_admission() {
        let fact = "delete_files Delete 17 pictures.";
        assert!(claims("Done! All 17 pictures are gone.", fact));
        assert!(claims("Successfully removed.", fact));
        assert!(!claims("I did not delete the pictures.", fact));
        assert!(!claims("I couldn’t delete them, so nothing was removed.", fact));
        assert!(!claims("Let me look at it.", fact));
        assert!(claims("Fertig, alles gelöscht.", fact) == claims("Fertig", fact));
        assert!(claims_success_of("Fertig, alles gelöscht.", fact, true, false));
    }

    #[test]
    fn honest_words_about_a_refusal_or_a_failure_claim_nothing() {
        for (text, fact) in [
            ("I stopped here: nothing was pushed.", "Force-push the branch."),
            ("The photos stay.", "Delete 240 photos?"),
            ("Nothing was deleted.", "Delete 240 photos?"),
            ("2 of 41 tests fail.", "sh npm test"),
            ("The tests would pass if the network worked.", "sh npm test"),
        ] {
            assert!(!claims(text, fact), "{text}");
        }
    }

    #[test]
    fn a_claim_is_about_what_it_names() {
        assert!(claims("All 41 tests pass. I did not change anything else.", "sh npm test"));
        assert!(!claims("I updated the README.", "sh npm test"));
        assert!(!claims("The documentation is ready.", "sh npm test"));
        assert!(claims("Pushed to main.", "sh git push origin main"));
        assert!(!claims("Edited 3 files.", "delete_files"));
        assert!(claims("Mail sent.", "send_mail"));
        assert!(claims("All done.", "sh npm test"));
        assert!(!claims_success_of("All done.", "sh npm test", false, true));
    }

    #[test]
    fn every_action_says_how_many_of_its_words_claim_it() {
        assert_eq!(ACTIONS.len(), CLAIMING.len());
        assert!(ACTIONS.iter().zip(CLAIMING).all(|(action, claiming)| *claiming <= action.len()));
    }
}
