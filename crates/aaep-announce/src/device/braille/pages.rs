//! Lays out words and answers in windows of cells, as pure functions.
//!
//! A person reads a question before answering it: its words come first, and its answers on separate pages. An answer
//! that lets something happen is at the right end, far from every other answer, so that it is not pressed by
//! accident.

use std::borrow::Cow;
use std::ops::Range;

use crate::device::plain::one_line;
use crate::english::devices;
use crate::utterance::{Choice, Utterance};
use crate::words::is_joined;

/// The fewest blank cells between an answer that lets something happen and any other answer.
pub(super) const CONSENT_GAP: usize = 6;

/// The number of blank cells between other answers.
const GAP: usize = 3;

/// On displays up to this size, all cells are used for words, and pages have no numbers.
const SMALL_DISPLAY: usize = 16;

/// The smallest width for the layout.
const FEWEST_CELLS: usize = 4;

/// How many characters of an utterance are shown, except for questions. Most people read this much in half an hour.
const MAX_CHARACTERS: usize = 16 * 1024;

/// One window of cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BraillePage {
    /// One character per cell.
    pub(super) text: String,
    /// Where a routing key chooses an answer.
    pub(super) fields: Vec<ChoiceField>,
}

/// The cells of an answer, and its index in the choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChoiceField {
    pub(super) cells: Range<usize>,
    pub(super) choice: usize,
}

impl BraillePage {
    /// The answer at this cell.
    pub(super) fn choice_at(&self, cell: usize) -> Option<usize> {
        self.fields.iter().find(|field| field.cells.contains(&cell)).map(|field| field.choice)
    }

    fn length(&self) -> usize {
        self.text.chars().count()
    }

    /// Puts words at this cell, with blanks before them.
    fn put(&mut self, at: usize, words: &str, choice: Option<usize>) {
        let blanks = at.saturating_sub(self.length());
        self.text.extend(std::iter::repeat_n(' ', blanks));
        let begin = self.length();
        self.text.push_str(words);
        if let Some(choice) = choice {
            self.fields.push(ChoiceField { cells: begin..self.length(), choice });
        }
    }
}

/// All pages of an utterance: words, then answers; numbered if there are several.
pub(super) fn pages(words: &str, choices: &[Choice], cells: usize) -> Vec<BraillePage> {
    let cells = cells.max(FEWEST_CELLS);
    let plain = lay_out(words, choices, cells, 0);
    if plain.len() < 2 || cells <= SMALL_DISPLAY {
        return plain;
    }
    // The page number takes cells, so there may be more pages, so the number may take more cells.
    let mut digits = plain.len().to_string().len();
    loop {
        let margin = 2 * digits + 2;
        let mut pages = lay_out(words, choices, cells, margin);
        let count = pages.len().to_string();
        if count.len() <= digits {
            for (number, page) in (1..).zip(&mut pages) {
                number_page(page, &format!("{number}/{count}"), margin);
            }
            return pages;
        }
        digits = count.len();
    }
}

/// Puts the words and the choices on one line each.
pub(super) fn flatten(utterance: &mut Utterance) -> String {
    for Choice { words, .. } in &mut utterance.choices {
        *words = one_line(words);
    }
    one_line(&utterance.words)
}

/// The words, shortened if there are too many, with the number of omitted characters.
pub(super) fn shortened(words: &str) -> Cow<'_, str> {
    match words.char_indices().nth(MAX_CHARACTERS) {
        None => words.into(),
        Some((end, _)) => {
            let (shown, rest) = words.split_at(end);
            devices::braille::more_characters(shown, rest.chars().count()).into()
        }
    }
}

/// Writes the page number into the margin that was left free for it.
fn number_page(page: &mut BraillePage, number: &str, margin: usize) {
    let rest: String = page.text.chars().skip(margin).collect();
    page.text = format!("{number:<margin$}{rest}");
}

fn lay_out(words: &str, choices: &[Choice], cells: usize, margin: usize) -> Vec<BraillePage> {
    let margin = margin.min(cells.saturating_sub(FEWEST_CELLS));
    let mut pages: Vec<BraillePage> = wrap(words, cells - margin)
        .into_iter()
        .map(|line| {
            let mut page = BraillePage::default();
            page.put(margin, &line, None);
            page
        })
        .collect();
    if !choices.is_empty() {
        pages.extend(answers(choices, cells, margin));
    }
    pages
}

fn answers(choices: &[Choice], cells: usize, margin: usize) -> Vec<BraillePage> {
    let mut pages = Vec::new();
    let mut page = BraillePage::default();
    let numbered = || choices.iter().enumerate();
    for (choice, it) in numbered().filter(|(_, it)| !it.is_consent) {
        let mut pieces = wrap(&it.words, cells - margin);
        let last = pieces.pop().unwrap_or_default();
        let at = if page.fields.is_empty() { margin } else { page.length() + GAP };
        if !pieces.is_empty() || at + last.chars().count() > cells {
            finish(&mut page, &mut pages);
            whole(&pieces, margin, &mut pages);
            page.put(margin, &last, Some(choice));
        } else {
            page.put(at, &last, Some(choice));
        }
    }
    for (choice, it) in numbered().filter(|(_, it)| it.is_consent) {
        let mut pieces = wrap(&it.words, cells - margin);
        let last = pieces.pop().unwrap_or_default();
        // At the right end, so that it is never where another answer was a moment ago.
        let at = cells.saturating_sub(last.chars().count());
        let is_crowded = !page.fields.is_empty() && page.length() + CONSENT_GAP > at;
        let has_consent = page.fields.iter().any(|field| is_consent(choices, field));
        if !pieces.is_empty() || is_crowded || has_consent {
            finish(&mut page, &mut pages);
            whole(&pieces, margin, &mut pages);
        }
        page.put(at, &last, Some(choice));
    }
    finish(&mut page, &mut pages);
    pages
}

fn is_consent(choices: &[Choice], field: &ChoiceField) -> bool {
    choices.get(field.choice).is_some_and(|choice| choice.is_consent)
}

fn finish(page: &mut BraillePage, pages: &mut Vec<BraillePage>) {
    if !page.fields.is_empty() {
        pages.push(std::mem::take(page));
    }
}

/// The pages of a long answer before its last page. The answer can be chosen only on the last page, after it was read
/// whole.
fn whole(pieces: &[String], margin: usize, pages: &mut Vec<BraillePage>) {
    for piece in pieces {
        let mut page = BraillePage::default();
        page.put(margin, piece, None);
        pages.push(page);
    }
}

/// Breaks words into lines of at most this many characters, between words if possible. There is always at least one
/// line.
fn wrap(words: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        if length > 0 && length + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        while word.len() > width {
            let joined =
                |at: &usize| word.get(at - 1..=*at).is_some_and(|it| is_joined(it[0], it[1]));
            let whole = (1..=width).rev().find(|at| !joined(at)).unwrap_or(width);
            let rest = word.split_off(whole);
            lines.push(word.into_iter().collect());
            word = rest;
        }
        length += word.len();
        line.extend(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(words: &str, is_consent: bool) -> Choice {
        Choice { words: words.to_owned(), is_consent }
    }

    fn texts(pages: &[BraillePage]) -> Vec<&str> {
        pages.iter().map(|page| page.text.as_str()).collect()
    }

    #[test]
    fn words_are_broken_between_words_and_none_gets_lost() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbelievable thing", 5), ["unbel", "ievab", "le", "thing"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("abcde\u{301}f", 5), ["abcd", "e\u{301}f"], "a letter keeps its marks");
        assert_eq!(wrap("e\u{301}\u{302}\u{303}", 2).concat(), "e\u{301}\u{302}\u{303}");
        assert_eq!(wrap("a  b", 5), ["a b"]);
    }

    #[test]
    fn one_window_has_no_number_and_more_have() {
        assert_eq!(texts(&pages("All is well.", &[], 40)), ["All is well."]);
        assert_eq!(
            texts(&pages("one two three four five six", &[], 20)),
            ["1/2 one two three", "2/2 four five six"]
        );
        assert_eq!(
            texts(&pages("one two three", &[], 8)),
            ["one two", "three"],
            "no cells to spare"
        );
    }

    #[test]
    fn numbers_of_pages_keep_their_place_however_many_there_are() {
        let words = ["word"; 400].join(" ");
        let pages = pages(&words, &[], 20);
        assert!(pages.len() > 100, "{}", pages.len());
        assert!(pages.iter().all(|page| page.length() <= 20));
        let count = pages.len();
        assert!(pages.first().is_some_and(|page| page.text.starts_with(&format!("1/{count}  "))));
    }

    #[test]
    fn an_answer_that_lets_something_happen_is_far_from_every_other_on_every_display() {
        let choices =
            [choice("approve", true), choice("reject", false), choice("show more", false)];
        for cells in FEWEST_CELLS..=120 {
            let pages = pages("Delete the database?", &choices, cells);
            let mut seen = [false; 3];
            for page in &pages {
                assert!(page.length() <= cells, "{cells}: {page:?}");
                let is_consent = |field: &ChoiceField| choices[field.choice].is_consent;
                for field in &page.fields {
                    seen[field.choice] = true;
                    for cell in field.cells.clone() {
                        assert_eq!(page.choice_at(cell), Some(field.choice));
                    }
                }
                for consent in page.fields.iter().filter(|it| is_consent(it)) {
                    for other in page.fields.iter().filter(|it| !is_consent(it)) {
                        assert!(
                            other.cells.end + CONSENT_GAP <= consent.cells.start,
                            "{cells}: {page:?}"
                        );
                    }
                }
            }
            assert_eq!(seen, [true; 3], "on {cells} cells every answer can be chosen");
            assert!(pages[0].fields.is_empty(), "on {cells} cells the words come first");
        }
    }

    #[test]
    fn two_answers_that_let_something_happen_are_never_in_one_window() {
        let choices = [choice("once", true), choice("always", true), choice("no", false)];
        let pages = pages("Run it?", &choices, 80);
        assert_eq!(pages.iter().map(|page| page.fields.len()).collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    fn a_long_answer_is_chosen_where_it_ends() {
        let choices = [choice("yes, and never ask again for this tool", true), choice("no", false)];
        let pages = pages("Run?", &choices, 20);
        let chosen: Vec<Vec<usize>> = pages
            .iter()
            .map(|page| page.fields.iter().map(|field| field.choice).collect())
            .collect();
        assert_eq!(chosen, [vec![], vec![1], vec![], vec![], vec![0]], "{:?}", texts(&pages));
    }

    #[test]
    fn far_too_many_words_are_cut_and_it_is_said() {
        let words = "x".repeat(1_000_000);
        let pages = pages(&shortened(&words), &[], 40);
        let last: Vec<&str> = texts(&pages).into_iter().rev().take(2).collect();
        assert!(last.concat().contains("983616 more") && pages.len() < 1000, "{last:?}");
    }
}
