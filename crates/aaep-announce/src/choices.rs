//! Letters for the choices of a question. Choices have letters because numbers already name the questions.

/// Returns one letter for each choice label, in order: A, B and so on; AA follows Z. Returns `None` if a label is
/// itself the letter of another choice, because that letter would be ambiguous. A person then answers with the words
/// of the choice.
pub fn choice_letters<'a>(labels: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let labels: Vec<&str> = labels.map(str::trim).collect();
    let letters: Vec<String> = (0..labels.len()).map(letter).collect();
    let is_letter_of_another = |at: usize, label: &str| {
        letters.iter().enumerate().any(|(of, it)| of != at && it.eq_ignore_ascii_case(label))
    };
    let is_confusing = labels.iter().enumerate().any(|(at, it)| is_letter_of_another(at, it));
    (!is_confusing).then_some(letters)
}

fn letter(place: usize) -> String {
    const LETTERS: usize = 26;
    let before = if place < LETTERS { String::new() } else { letter(place / LETTERS - 1) };
    let last = u8::try_from(place % LETTERS).map_or('A', |it| char::from(b'A' + it));
    format!("{before}{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_has_a_letter_of_its_own() {
        let letters = choice_letters(["Inbox", "Archive"].into_iter());
        assert_eq!(letters, Some(vec!["A".to_owned(), "B".to_owned()]));
        let many = choice_letters(std::iter::repeat_n("x1", 800)).expect("letters");
        assert_eq!((many[25].as_str(), many[26].as_str(), many[52].as_str()), ("Z", "AA", "BA"));
        let different: std::collections::BTreeSet<&String> = many.iter().collect();
        assert_eq!(different.len(), 800);
    }

    #[test]
    fn a_letter_never_means_two_choices() {
        assert_eq!(choice_letters(["B", "A"].into_iter()), None);
        assert_eq!(choice_letters(["yes", " a "].into_iter()), None);
        assert!(choice_letters(["a", "b"].into_iter()).is_some(), "each is called as it is");
        assert!(choice_letters(["c", "d"].into_iter()).is_some());
    }
}
