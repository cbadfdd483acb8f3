//! The exact text of an ask for speech: every mark that a voice would skip is said by its name, and long identifiers
//! are spelled in groups of four.
//!
//! Only text that voices say by themselves stays unchanged: words, short numbers, and the mark that ends a sentence
//! or a clause.

use std::borrow::Cow;

use super::exact::is_name;
use super::own::{own, without_own_marks};
use crate::english::marks;

/// From this many equal marks on, they are counted instead of said one by one.
const COUNTED: usize = 4;
/// How many characters of an identifier make a group.
const GROUP: usize = 4;
/// From this many characters on, digits, or letters and digits, are spelled instead of said as a number or a word.
const SPELLED: usize = 7;
/// From this many letters on, a word without a digit is spelled.
const SPELLED_LETTERS: usize = 32;

/// Exact text for a voice. Undoing the names, the groups and the blanks gives the text back.
pub fn spoken(text: &str) -> String {
    without_own_marks(&spoken_marked(text))
}

/// The same, with tokens marked as ours if they include names of ours: commands, paths, identifiers.
pub(crate) fn spoken_marked(text: &str) -> String {
    let mut words = SpokenWords::default();
    let mut rest = text;
    while !rest.is_empty() {
        let (head, hidden, tail) = match next_name(rest) {
            Some((at, name)) => {
                let (head, tail) = rest.split_at(at);
                (head, name, tail.get(name.len() + 2..).unwrap_or_default())
            }
            None => (rest, "", ""),
        };
        head.split_whitespace().for_each(|it| words.token(it));
        if !hidden.is_empty() {
            words.push(&own(hidden));
        }
        rest = tail;
    }
    words.out
}

/// The first name in brackets, as `exact` writes it: the position of its bracket, and the name.
fn next_name(text: &str) -> Option<(usize, &str)> {
    text.match_indices('[').find_map(|(at, _)| {
        let inner = text.get(at + 1..)?;
        let inner = inner.get(..inner.find(']')?)?;
        is_name(inner).then_some((at, inner))
    })
}

/// The name of a mark; its code point if it has no name and a voice would skip it.
fn mark(c: char) -> Option<Cow<'static, str>> {
    let known = marks::MARKS.iter().find(|(it, _)| *it == c).map(|(_, name)| Cow::Borrowed(*name));
    known.or_else(|| is_swallowed(c).then(|| format!("U+{:04X}", u32::from(c)).into()))
}

/// Whether a character without a name is a mark: punctuation, an arrow, or a mathematical sign.
fn is_swallowed(c: char) -> bool {
    let is_mark = matches!(c, '\u{a1}'..='\u{bf}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}'
        | '\u{2190}'..='\u{22ff}' | '\u{2e00}'..='\u{2e7f}');
    is_mark && !c.is_alphanumeric()
}

/// The words so far.
#[derive(Debug, Default)]
struct SpokenWords {
    out: String,
}

impl SpokenWords {
    fn push(&mut self, word: &str) {
        if !self.out.is_empty() {
            self.out.push(' ');
        }
        self.out.push_str(word);
    }

    /// Says the text between two blanks.
    fn token(&mut self, token: &str) {
        let characters: Vec<char> = token.chars().collect();
        let (body, end) = match characters.split_last() {
            Some((end, body)) if ends_a_clause(body, *end) => (body, Some(*end)),
            _ => (characters.as_slice(), None),
        };
        let pieces = pieces(body);
        let is_identifier = pieces.iter().any(|it| it.is_word && is_spelled(it.text));
        let is_technical = pieces.len() > 1;
        let begin = self.out.len();
        for piece in &pieces {
            if !piece.is_word {
                self.marks(piece.text);
            } else if is_spelled(piece.text)
                || is_identifier && piece.text.iter().any(char::is_ascii_digit)
            {
                self.spell(piece.text);
            } else {
                self.word(piece.text, is_technical);
            }
        }
        if is_command(&pieces) {
            // Names and the text between them are said in one voice.
            let said = self.out.split_off(begin);
            self.push(&own(&without_own_marks(&said)));
        }
        match end {
            // A comma after a single character would sound like the pause between two groups.
            Some(',') if self.last_is_single() => self.push(&own(marks::COMMA)),
            Some(end) => self.out.push(end),
            None => {}
        }
    }

    fn last_is_single(&self) -> bool {
        self.out.rsplit(' ').next().is_some_and(|it| without_own_marks(it).chars().count() == 1)
    }

    /// The same mark, once or several times.
    fn marks(&mut self, run: &[char]) {
        let name = run.first().copied().and_then(mark).unwrap_or_default();
        if run.len() >= COUNTED {
            return self.push(&own(&marks::times(run.len(), &name)));
        }
        for _ in run {
            self.push(&own(&name));
        }
    }

    fn word(&mut self, word: &[char], is_technical: bool) {
        if let [only] = word
            && is_technical
            && only.is_ascii_uppercase()
        {
            self.push(marks::CAPITAL);
        }
        let is_number = |it: &char| it.is_ascii_digit() || matches!(it, '.' | ',');
        let mut is_apart = true;
        for part in word.chunk_by(|one, next| is_number(one) == is_number(next)) {
            match part {
                // A voice skips leading zeros of a number.
                ['0', second, ..] if second.is_ascii_digit() => {
                    for c in part {
                        self.push(&mark(*c).unwrap_or_else(|| c.to_string().into()));
                    }
                    is_apart = true;
                }
                _ if is_apart => {
                    self.push(&part.iter().collect::<String>());
                    is_apart = false;
                }
                _ => self.out.extend(part),
            }
        }
    }

    /// Spells character by character, with a pause after each group.
    fn spell(&mut self, word: &[char]) {
        let has = |is: fn(&char) -> bool| word.iter().any(is);
        let is_mixed = has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
        for (at, c) in word.iter().enumerate() {
            if at > 0 && at.is_multiple_of(GROUP) {
                self.out.push(',');
            }
            if is_mixed && c.is_ascii_uppercase() {
                self.push(marks::CAPITAL);
            }
            self.push(c.encode_utf8(&mut [0; 4]));
        }
    }
}

/// Whether a mark is between two words, as in a path, or begins one, as in an option.
fn is_command(pieces: &[TokenPiece<'_>]) -> bool {
    let begins = |it: &TokenPiece<'_>| it.text.first().is_some_and(|c| "-/~.$\\".contains(*c));
    let is_between = |it: &[TokenPiece<'_>]| match it {
        [one, mark, other] => one.is_word && !mark.is_word && other.is_word,
        _ => false,
    };
    pieces.first().is_some_and(|it| !it.is_word && begins(it)) || pieces.windows(3).any(is_between)
}

/// Whether this mark ends a sentence or a clause, which is heard as a pause.
fn ends_a_clause(body: &[char], end: char) -> bool {
    let is_end = |it: char| matches!(it, '.' | ',' | ';' | ':' | '?' | '!');
    let closes =
        |it: char| matches!(it, ')' | ']' | '"' | '\'' | '“' | '”' | '’' | '»' | '›' | '%' | '°');
    is_end(end) && body.last().is_some_and(|it| mark(*it).is_none() || closes(*it))
}

/// A run of the same mark, or a word.
struct TokenPiece<'a> {
    text: &'a [char],
    is_word: bool,
}

fn pieces(token: &[char]) -> Vec<TokenPiece<'_>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while let Some(first) = token.get(from) {
        let is_word = is_of_word(token, from);
        let mut end = from + 1;
        while token
            .get(end)
            .is_some_and(|next| is_of_word(token, end) == is_word && (is_word || next == first))
        {
            end += 1;
        }
        pieces.push(TokenPiece { text: token.get(from..end).unwrap_or_default(), is_word });
        from = end;
    }
    pieces
}

/// Whether the character here is said as a part of a word: an apostrophe or a middle dot between letters, the point
/// of a decimal number, the commas of a large one, and everything that is not a mark.
fn is_of_word(token: &[char], at: usize) -> bool {
    let Some(c) = token.get(at) else { return false };
    let around = (at.checked_sub(1).and_then(|at| token.get(at)), token.get(at + 1));
    match (c, around) {
        ('\'' | '’' | '·', (Some(before), Some(after))) => {
            before.is_alphabetic() && after.is_alphabetic()
        }
        ('.' | ',', (Some(before), Some(after))) => {
            before.is_ascii_digit() && after.is_ascii_digit() && is_in_number(token, at)
        }
        _ => mark(*c).is_none(),
    }
}

/// Whether the number around this position has one decimal point, or commas after every third digit.
fn is_in_number(token: &[char], at: usize) -> bool {
    let is_part = |it: &&char| it.is_ascii_digit() || matches!(**it, '.' | ',');
    let before = token.iter().take(at).rev().take_while(is_part).count();
    let number: String = token.iter().skip(at - before).take_while(is_part).collect();
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, "0"));
    let mut groups = whole.split(',');
    let is_first = groups.next().is_some_and(|it| (1..=3).contains(&it.len()) || it == whole);
    is_first && groups.all(|it| it.len() == 3) && !decimals.contains(['.', ','])
}

/// Whether a word is an identifier: too many digits for a number, letters and digits mixed, or too many letters for a
/// word.
fn is_spelled(word: &[char]) -> bool {
    if !word.iter().all(char::is_ascii_alphanumeric) {
        return false;
    }
    let is_digit = |at: usize| word.get(at).is_some_and(char::is_ascii_digit);
    let digits = word.iter().filter(|it| it.is_ascii_digit()).count();
    let changes = (1..word.len()).filter(|at| is_digit(*at) != is_digit(at - 1)).count();
    let is_hex = digits > 0 && word.iter().all(char::is_ascii_hexdigit);
    let longest = word.split(|it| !it.is_ascii_digit()).map(<[char]>::len).max().unwrap_or(0);
    word.len() >= SPELLED && (longest >= SPELLED || is_hex || changes >= 2 || digits == word.len())
        || word.len() >= SPELLED_LETTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_left_to_the_voice() {
        for text in [
            "photos asks: Delete 240 photos? It can't be undone.",
            "You have 10 minutes; 1,234,567 rows, 2.5 percent.",
            "نعم، تم الحذف؟ 世界。",
        ] {
            assert_eq!(spoken(text), text);
        }
    }

    #[test]
    fn marks_are_said_by_name() {
        for (text, said) in [
            ("~~Do not~~ delete all", "tilde tilde Do not tilde tilde delete all"),
            ("__init__", "underscore underscore init underscore underscore"),
            ("rm -rf /srv/a.b .", "rm dash rf slash srv slash a dot b dot"),
            ("a < b -R", "a less than b dash capital R"),
            ("(not) now.", "left parenthesis not right parenthesis now."),
            ("=====", "5 times equals"),
            ("1.2.3 1,2", "1 dot 2 dot 3 1 comma 2"),
            ("x, y", "x comma y"),
            ("a‐b a\u{2011}b", "a hyphen b a non-breaking hyphen b"),
            ("„a“ ‹b›.", "low quote a left quote left angle quote b right angle quote."),
            ("3×4 ±1 6÷2", "3 multiplication sign 4 plus or minus 1 6 division sign 2"),
            ("a⁂b ∀ ⸮", "a U+2042 b U+2200 U+2E2E"),
            ("a [2 spaces] b [tab] c", "a 2 spaces b tab c"),
            ("a [line break] b[escape][2J", "a line break b escape left bracket 2J"),
        ] {
            assert_eq!(spoken(text), said, "{text}");
        }
    }

    #[test]
    fn identifiers_are_spelled_in_groups_and_whole() {
        for (text, said) in [
            ("to DE89370400440532013000.", "to D E 8 9, 3 7 0 4, 0 0 4 4, 0 5 3 2, 0 1 3 0, 0 0."),
            ("12345678, then", "1 2 3 4, 5 6 7 8 comma then"),
            ("550e8400-e29b-41d4", "5 5 0 e, 8 4 0 0 dash e 2 9 b dash 4 1 d 4"),
            ("aB3xY9q", "a capital B 3 x, capital Y 9 q"),
            ("007 and A07b", "0 0 7 and A 0 7 b"),
            ("photos2019 240", "photos2019 240"),
        ] {
            assert_eq!(spoken(text), said, "{text}");
        }
    }
}
