//! Formulas: the names of LaTeX commands and marks, and the words for fractions, powers, roots and bounds.

/// The spoken names of commands that differ from the command.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("le", "is at most"),
    ("leq", "is at most"),
    ("ge", "is at least"),
    ("geq", "is at least"),
    ("ne", "is not equal to"),
    ("neq", "is not equal to"),
    ("approx", "is about"),
    ("equiv", "is equivalent to"),
    ("sim", "is similar to"),
    ("propto", "is proportional to"),
    ("ll", "is much less than"),
    ("gg", "is much greater than"),
    ("times", "times"),
    ("cdot", "times"),
    ("div", "divided by"),
    ("pm", "plus or minus"),
    ("mp", "minus or plus"),
    ("infty", "infinity"),
    ("to", "to"),
    ("rightarrow", "to"),
    ("leftarrow", "from"),
    ("mapsto", "maps to"),
    ("Rightarrow", "implies"),
    ("implies", "implies"),
    ("iff", "if and only if"),
    ("Leftrightarrow", "if and only if"),
    ("in", "in"),
    ("notin", "not in"),
    ("subset", "is a subset of"),
    ("subseteq", "is a subset of or equal to"),
    ("cup", "union"),
    ("cap", "intersection"),
    ("setminus", "without"),
    ("emptyset", "the empty set"),
    ("forall", "for all"),
    ("exists", "there is"),
    ("nexists", "there is no"),
    ("neg", "not"),
    ("lnot", "not"),
    ("land", "and"),
    ("wedge", "and"),
    ("lor", "or"),
    ("vee", "or"),
    ("int", "integral"),
    ("prod", "product"),
    ("lim", "limit"),
    ("ldots", "and so on"),
    ("cdots", "and so on"),
    ("dots", "and so on"),
    ("hat", "hat"),
    ("vec", "vector"),
    ("overline", "bar"),
    ("bar", "bar"),
    ("langle", "left angle"),
    ("rangle", "right angle"),
    ("mid", "such that"),
    ("%", "percent"),
    ("$", "dollar"),
    ("{", "left brace"),
    ("}", "right brace"),
    ("|", "double bar"),
    ("_", "underscore"),
    ("#", "hash"),
    ("&", "and"),
    ("\\", ";"),
];

/// Marks that have a name in a formula.
pub(crate) const MARKS: &[(char, &str)] = &[
    ('=', "equals"),
    ('+', "plus"),
    ('-', "minus"),
    ('*', "times"),
    ('/', "over"),
    ('<', "is less than"),
    ('>', "is greater than"),
    ('|', "bar"),
    ('!', "factorial"),
    ('\'', PRIME),
];

pub(crate) const PRIME: &str = "prime";
pub(crate) const SQUARED: &str = "squared";
pub(crate) const CUBED: &str = "cubed";
/// The words before a power, and after a power of several words.
pub(crate) const POWER: (&str, &str) = ("to the power", "end power");
/// The words before an index, and after an index of several words.
pub(crate) const INDEX: (&str, &str) = ("sub", "end sub");
pub(crate) const SQUARE_ROOT: &str = "square root of";
/// The words after a root of several words.
pub(crate) const END_ROOT: &str = "end root";
/// The bounds of a sum, a product or an integral, and what a limit approaches.
pub(crate) const FROM: &str = "from";
pub(crate) const TO: &str = "to";
pub(crate) const AS: &str = "as";
/// Follows the bounds.
pub(crate) const OF: &str = "of";

pub(crate) fn root(degree: &str) -> String {
    format!("root {degree} of")
}

/// A fraction of single words.
pub(crate) fn over(above: &str, below: &str) -> String {
    format!("{above} over {below}")
}

/// A fraction in which one part has several words.
pub(crate) fn fraction(above: &str, below: &str) -> String {
    format!("fraction {above} over {below} end fraction")
}

/// The beginning of a matrix or a similar environment.
pub(crate) fn begin(what: &str) -> String {
    format!("begin {what}")
}

pub(crate) fn end(what: &str) -> String {
    format!("end {what}")
}
