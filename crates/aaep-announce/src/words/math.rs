//! LaTeX formulas in words: `\frac{a}{b}` is "a over b".
//!
//! An unknown command is said by its name. Only parts without a sound are omitted: braces, blanks, sizes.

use super::inline::cut;
use crate::english::formulas;

/// The longest formula, in bytes.
const MAX_FORMULA: usize = 4096;
/// How deep braces are followed.
const MAX_DEPTH: usize = 16;

/// Commands without a sound: blanks, sizes and styles.
const SILENT: &[&str] = &[
    ",",
    ";",
    ":",
    "!",
    " ",
    "quad",
    "qquad",
    "left",
    "right",
    "big",
    "Big",
    "bigl",
    "bigr",
    "displaystyle",
    "textstyle",
    "limits",
    "mathrm",
    "mathbf",
    "mathit",
    "mathbb",
    "mathcal",
    "mathsf",
    "text",
    "textbf",
    "textit",
    "operatorname",
    "boxed",
    "label",
    "nonumber",
];

/// The formula at the beginning of the text, and its length including its delimiters; `None` if it is not a formula.
pub(super) fn formula(text: &str) -> Option<(&str, usize)> {
    let (begin, end) =
        [("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"), ("\\begin{", "\\end{")]
            .into_iter()
            .find(|(begin, _)| text.starts_with(begin))?;
    let rest = cut(text.get(begin.len()..)?, MAX_FORMULA);
    let at = rest.find(end)?;
    let (inner, after) = (rest.get(..at)?, rest.get(at + end.len()..)?);
    if begin == "\\begin{" {
        let name = after.find('}')?;
        let length = begin.len() + at + end.len() + name + 1;
        return text.get(..length).map(|it| (it, length));
    }
    let is_blank = |c: char| c.is_whitespace();
    // Dollar signs also mean money and shell variables.
    let is_money = begin == "$"
        && (inner.starts_with(is_blank)
            || inner.ends_with(is_blank)
            || after.starts_with(char::is_alphanumeric));
    let is_formula = inner.contains(['\\', '^', '_', '=']) || inner.trim().chars().count() <= 2;
    (!inner.trim().is_empty() && !is_money && is_formula)
        .then_some((inner, begin.len() + at + end.len()))
}

/// A formula in words.
pub(super) fn math(tex: &str) -> String {
    let mut said = FormulaWords { rest: tex, words: Vec::new() };
    said.all(0, None);
    said.words.join(" ")
}

/// The unread rest of a formula, and the words so far.
struct FormulaWords<'t> {
    rest: &'t str,
    words: Vec<String>,
}

impl FormulaWords<'_> {
    /// Says everything up to this closing mark, or to the end.
    fn all(&mut self, depth: usize, until: Option<char>) {
        while let Some(c) = self.rest.chars().next() {
            if Some(c) == until {
                self.skip(c);
                return;
            }
            self.one(c, depth);
        }
    }

    fn skip(&mut self, c: char) {
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
    }

    fn push(&mut self, word: &str) {
        if !word.is_empty() {
            self.words.push(word.to_owned());
        }
    }

    fn one(&mut self, c: char, depth: usize) {
        match c {
            '\\' => self.command(depth),
            '^' => {
                self.skip(c);
                let power = self.argument(depth);
                match power.as_str() {
                    "2" => self.push(formulas::SQUARED),
                    "3" => self.push(formulas::CUBED),
                    formulas::PRIME => self.push(formulas::PRIME),
                    _ => self.push(&enclosed(formulas::POWER, &power)),
                }
            }
            '_' => {
                self.skip(c);
                let below = self.argument(depth);
                self.push(&enclosed(formulas::INDEX, &below));
            }
            '{' if depth < MAX_DEPTH => {
                self.skip(c);
                self.all(depth + 1, Some('}'));
            }
            '{' | '}' | '~' | '$' | '&' => self.skip(c),
            _ if c.is_whitespace() => self.skip(c),
            _ if c.is_alphanumeric() => {
                let length = self.rest.find(|c: char| !c.is_alphanumeric() && c != '.' && c != ',');
                let (word, rest) = self.rest.split_at(length.unwrap_or(self.rest.len()));
                self.rest = rest;
                self.push(word);
            }
            _ => {
                self.skip(c);
                let name =
                    formulas::MARKS.iter().find(|(mark, _)| *mark == c).map(|(_, name)| *name);
                self.push(name.unwrap_or(c.encode_utf8(&mut [0; 4])));
            }
        }
    }

    fn command(&mut self, depth: usize) {
        self.skip('\\');
        let letters = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        let (name, rest) = self.rest.split_at(letters.max(first));
        self.rest = rest;
        match name {
            "frac" | "dfrac" | "tfrac" => {
                let (above, below) = (self.argument(depth), self.argument(depth));
                let is_short = is_single(&above) && is_single(&below);
                if is_short {
                    self.push(&formulas::over(&above, &below));
                } else {
                    self.push(&formulas::fraction(&above, &below));
                }
            }
            "sqrt" => {
                let which = if self.rest.starts_with('[') && depth < MAX_DEPTH {
                    self.skip('[');
                    let begin = self.words.len();
                    self.all(depth + 1, Some(']'));
                    formulas::root(&self.words.split_off(begin).join(" "))
                } else {
                    formulas::SQUARE_ROOT.to_owned()
                };
                let inner = self.argument(depth);
                self.push(&enclosed((&which, formulas::END_ROOT), &inner));
            }
            "sum" | "prod" | "int" | "lim" => self.large(name, depth),
            "begin" => {
                let what = self.argument(depth);
                self.push(&formulas::begin(&what));
            }
            "end" => {
                let what = self.argument(depth);
                self.push(&formulas::end(&what));
            }
            _ if SILENT.contains(&name) => {}
            _ => {
                let known =
                    formulas::COMMANDS.iter().find(|(it, _)| *it == name).map(|(_, said)| *said);
                self.push(known.unwrap_or(name));
            }
        }
    }

    /// A sum, a product or an integral, with its bounds.
    fn large(&mut self, name: &str, depth: usize) {
        let said =
            formulas::COMMANDS.iter().find(|(it, _)| *it == name).map_or(name, |(_, said)| *said);
        self.push(said);
        let mut has_bounds = false;
        for _ in 0..2 {
            self.rest = self.rest.trim_start();
            let word = match self.rest.chars().next() {
                Some('_') => {
                    if name == "lim" {
                        formulas::AS
                    } else {
                        formulas::FROM
                    }
                }
                Some('^') => formulas::TO,
                _ => break,
            };
            self.skip('_');
            let bound = self.argument(depth);
            self.push(&format!("{word} {bound}"));
            has_bounds = true;
        }
        if has_bounds {
            self.push(formulas::OF);
        }
    }

    /// The next argument in words: a group in braces, a command, or one character.
    fn argument(&mut self, depth: usize) -> String {
        self.rest = self.rest.trim_start();
        let begin = self.words.len();
        match self.rest.chars().next() {
            Some('{') if depth < MAX_DEPTH => {
                self.skip('{');
                self.all(depth + 1, Some('}'));
            }
            Some('\\') if depth < MAX_DEPTH => self.command(depth + 1),
            Some(c) if c.is_alphanumeric() => {
                self.skip(c);
                self.push(c.encode_utf8(&mut [0; 4]));
            }
            Some(c) if depth < MAX_DEPTH => self.one(c, depth + 1),
            Some(c) => self.skip(c),
            None => {}
        }
        self.words.split_off(begin.min(self.words.len())).join(" ")
    }
}

fn is_single(words: &str) -> bool {
    !words.contains(' ')
}

/// If there are several words, their end is said too.
fn enclosed((name, end): (&str, &str), words: &str) -> String {
    if is_single(words) { format!("{name} {words}") } else { format!("{name} {words} {end}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_said_in_words() {
        for (tex, said) in [
            ("x^2 + y_1", "x squared plus y sub 1"),
            ("\\frac{1}{2}", "1 over 2"),
            ("\\frac{a+b}{c}", "fraction a plus b over c end fraction"),
            ("\\sqrt{2} \\le \\pi", "square root of 2 is at most pi"),
            (
                "\\sum_{i=1}^{n} i^{k+1}",
                "sum from i equals 1 to n of i to the power k plus 1 end power",
            ),
            ("x \\notin \\mathbb{R}, a \\neq 0", "x not in R , a is not equal to 0"),
            ("\\left( -5 \\right)", "( minus 5 )"),
            ("\\unknown{3.14}", "unknown 3.14"),
            (
                "\\begin{pmatrix} 1 & 0 \\\\ 0 & 1 \\end{pmatrix}",
                "begin pmatrix 1 0 ; 0 1 end pmatrix",
            ),
            ("f'(x) = -\\infty", "f prime ( x ) equals minus infinity"),
        ] {
            assert_eq!(math(tex), said, "{tex}");
        }
    }

    #[test]
    fn money_and_variables_are_not_formulas() {
        for text in
            ["$5 and $10", "$5-$10", "$HOME/$USER", "$PATH", "$ x $", "$$", "\\(not a link\\)"]
        {
            assert_eq!(formula(text), None, "{text}");
        }
        assert_eq!(formula("$x$ is"), Some(("x", 3)));
        assert_eq!(formula("\\(a^2\\)."), Some(("a^2", 7)));
        assert_eq!(formula("$$ a = b $$"), Some((" a = b ", 11)));
    }

    #[test]
    fn depth_and_length_are_bounded() {
        for part in ["{", "\\frac", "^", "_", "\\sqrt[", "\\sum_", "\\begin{"] {
            math(&part.repeat(10_000));
        }
    }
}
