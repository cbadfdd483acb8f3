//! Customs of languages: which full stops do not end a sentence because they end an abbreviation,
//! an initial or an ordinal number.
//!
//! The lists hold what agents write often, in lower case and without the last full stop. They are
//! our own and never complete. Words that are also ordinary words are listed only where the next
//! word or number decides. This code never sees more than a few characters before the full stop.

use aaep::LanguageTag;

use super::class::{self, TerminatorKind};

type WordList = &'static [&'static str];

/// What the word before a full stop says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StopVerdict {
    /// The sentence ended.
    Ends,
    /// The sentence goes on.
    GoesOn,
    /// The sentence ended only if the next word is one that begins sentences.
    Depends,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LanguageCustoms {
    /// Abbreviations that are always followed by something.
    never: WordList,
    titles: WordList,
    /// Abbreviations that sometimes end a sentence.
    maybe: WordList,
    /// Words that are abbreviations only before a number.
    numbered: WordList,
    /// Words that begin sentences and are rarely names.
    beginnings: WordList,
    /// Whether ordinal numbers are written with a full stop.
    has_ordinals: bool,
    /// Whether a space stands before a closing quote.
    has_spaced_quotes: bool,
    /// Whether `;` is a question mark.
    is_greek: bool,
}

impl LanguageCustoms {
    /// The customs of a language. Without a language those of English apply; a language that is not
    /// listed gets what most languages have in common.
    pub(super) fn of(language: Option<&LanguageTag>) -> Self {
        let Some(language) = language else { return ENGLISH };
        let is_nigerian = language.region().is_some_and(|region| region.eq_ignore_ascii_case("NG"));
        match language.primary().to_ascii_lowercase().as_str() {
            "en" if is_nigerian => LanguageCustoms { titles: NIGERIAN_TITLES, ..ENGLISH },
            "yo" | "ha" | "ig" | "pcm" => LanguageCustoms { titles: NIGERIAN_TITLES, ..ENGLISH },
            "en" => ENGLISH,
            "de" => GERMAN,
            "fr" => FRENCH,
            "es" => SPANISH,
            "it" => ITALIAN,
            "pt" => PORTUGUESE,
            "nl" => DUTCH,
            "el" => LanguageCustoms { is_greek: true, ..COMMON },
            "da" | "nb" | "nn" | "no" | "fi" | "et" | "cs" | "sk" | "pl" | "hu" | "hr" | "sr"
            | "bs" | "sl" | "lv" | "is" | "tr" => LanguageCustoms { has_ordinals: true, ..COMMON },
            _ => COMMON,
        }
    }

    /// Whether the character ends sentences in this language.
    pub(super) fn terminator(&self, c: char) -> Option<TerminatorKind> {
        match c {
            ';' | '\u{37E}' if self.is_greek => Some(TerminatorKind::Full),
            _ => class::terminator(c),
        }
    }

    /// Whether `»` after a space closes a quotation.
    pub(super) fn has_spaced_quotes(&self) -> bool {
        self.has_spaced_quotes
    }

    /// Whether we have a list of words that begin sentences in this language.
    pub(super) fn knows_beginnings(&self) -> bool {
        !self.beginnings.is_empty()
    }

    /// Whether this word is known to begin sentences.
    pub(super) fn begins_sentence(&self, word: &str) -> bool {
        self.beginnings.contains(&word.to_lowercase().as_str())
    }

    /// Judges a full stop at the end of `line`, as far back as the line can be seen, if the text
    /// after it begins with `first`.
    pub(super) fn verdict(&self, line: &str, is_whole: bool, first: char) -> StopVerdict {
        let (before, token) = split_token(line);
        let is_cut_off = before.is_empty() && !is_whole;
        if token.is_empty() || token.ends_with('.') || is_cut_off {
            return StopVerdict::Ends;
        }
        if is_whole && is_list_number(before, token) {
            return StopVerdict::GoesOn;
        }
        if token.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_ordinal = self.has_ordinals && token.len() <= 2 && first.is_alphabetic();
            return if is_ordinal { StopVerdict::Depends } else { StopVerdict::Ends };
        }
        if let Some(letter) = single(token) {
            return self.initial(before, letter, token, first);
        }
        let word = token.to_lowercase();
        let word = word.as_str();
        let is_numbered = first.is_numeric() && self.numbered.contains(&word);
        if is_numbered || self.never.contains(&word) || self.titles.contains(&word) {
            StopVerdict::GoesOn
        } else if self.maybe.contains(&word) || word.split('.').all(|part| single(part).is_some()) {
            StopVerdict::Depends
        } else {
            StopVerdict::Ends
        }
    }

    /// Judges a single letter: an initial, or part of an abbreviation written with spaces.
    fn initial(&self, before: &str, letter: char, token: &str, first: char) -> StopVerdict {
        if class::is_unspaced(letter) {
            return StopVerdict::Ends;
        }
        let mut chain = token.to_lowercase();
        let mut rest = before;
        while let Some(previous) = rest.trim_end().strip_suffix('.') {
            let (further, part) = split_token(previous);
            if single(part).is_none() {
                break;
            }
            chain = format!("{}.{chain}", part.to_lowercase());
            if self.never.contains(&chain.as_str()) {
                return StopVerdict::GoesOn;
            }
            rest = further;
        }
        let is_numbered =
            first.is_numeric() && self.numbered.contains(&token.to_lowercase().as_str());
        if is_numbered || self.never.contains(&token) {
            StopVerdict::GoesOn
        } else if letter.is_lowercase() {
            StopVerdict::Ends
        } else {
            StopVerdict::Depends
        }
    }
}

/// Splits the text before its last word, which may contain full stops.
fn split_token(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '\u{300}'..='\u{36F}');
    text.split_at(text.trim_end_matches(is_part).len())
}

/// The letter, if the text is a single one, with or without combining marks.
fn single(text: &str) -> Option<char> {
    let mut chars = text.chars().filter(|c| !matches!(c, '\u{300}'..='\u{36F}'));
    let letter = chars.next().filter(|c| c.is_alphabetic())?;
    chars.next().is_none().then_some(letter)
}

/// Whether the token numbers a list item at the beginning of a line, as in `1. First` or `b.
/// Second`.
fn is_list_number(before: &str, token: &str) -> bool {
    let is_markup =
        |c: char| c.is_whitespace() || matches!(c, '-' | '*' | '+' | '>' | '#' | '(' | '_');
    let is_number = token.len() <= 3 && token.bytes().all(|byte| byte.is_ascii_digit());
    let is_letter = token.len() == 1 && token.bytes().all(|byte| byte.is_ascii_alphabetic());
    before.chars().all(is_markup) && (is_number || is_letter)
}

const COMMON: LanguageCustoms = LanguageCustoms {
    never: &["dr", "prof", "mr", "mrs", "ms", "st", "e.g", "i.e", "cf", "vs"],
    titles: &[],
    maybe: &["ph.d"],
    numbered: &["no", "nr", "p", "pp", "fig", "vol", "art"],
    beginnings: &[],
    has_ordinals: false,
    has_spaced_quotes: false,
    is_greek: false,
};

const ENGLISH: LanguageCustoms = LanguageCustoms {
    never: &[
        "dr", "mr", "mrs", "ms", "messrs", "prof", "rev", "fr", "hon", "st", "mt", "gen", "col",
        "sgt", "capt", "cmdr", "lt", "maj", "adm", "gov", "sen", "rep", "pres", "supt", "e.g",
        "eg", "i.e", "ie", "cf", "vs", "viz", "approx", "esp", "incl", "ft", "dept", "univ",
        "assn", "ave", "blvd", "rd",
    ],
    maybe: &["inc", "ltd", "co", "corp", "llc", "jr", "sr", "bros", "ph.d", "b.sc", "m.sc", "esq"],
    numbered: &[
        "no", "nos", "nr", "p", "pp", "fig", "figs", "eq", "vol", "ch", "chap", "sec", "art", "pt",
        "par", "ver", "v", "c", "ca", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep",
        "sept", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun",
    ],
    beginnings: &[
        "a",
        "after",
        "all",
        "also",
        "although",
        "an",
        "and",
        "another",
        "any",
        "are",
        "as",
        "at",
        "because",
        "before",
        "both",
        "but",
        "by",
        "can",
        "did",
        "do",
        "does",
        "during",
        "each",
        "even",
        "every",
        "finally",
        "first",
        "for",
        "from",
        "he",
        "her",
        "here",
        "his",
        "how",
        "however",
        "i",
        "if",
        "in",
        "instead",
        "is",
        "it",
        "its",
        "later",
        "let",
        "many",
        "maybe",
        "meanwhile",
        "most",
        "my",
        "next",
        "no",
        "not",
        "now",
        "of",
        "on",
        "once",
        "one",
        "only",
        "or",
        "our",
        "please",
        "she",
        "should",
        "since",
        "so",
        "some",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "therefore",
        "these",
        "they",
        "this",
        "those",
        "though",
        "thus",
        "to",
        "today",
        "until",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "why",
        "will",
        "with",
        "without",
        "would",
        "yes",
        "yet",
        "you",
        "your",
    ],
    ..COMMON
};

/// Titles written before names in Nigeria, in English, Yoruba, Hausa, Igbo and Pidgin.
const NIGERIAN_TITLES: WordList = &[
    "alh", "alhj", "arc", "barr", "bldr", "chf", "engr", "evang", "haj", "hrh", "hrm", "mal",
    "ogb", "otun", "pst", "qs", "surv", "tpl",
];

const GERMAN: LanguageCustoms = LanguageCustoms {
    never: &[
        "dr", "prof", "hr", "fr", "frl", "dipl", "ing", "med", "phil", "jur", "rer", "nat", "st",
        "hl", "bzw", "ca", "vgl", "evtl", "ggf", "inkl", "exkl", "zzgl", "sog", "bspw", "bes",
        "geb", "gest", "usf", "max", "min", "tel", "z.b", "d.h", "u.a", "u.u", "z.t", "z.zt",
        "i.d.r", "v.a", "o.ä", "s.o", "s.u", "m.e", "i.a", "a.d", "z", "d", "u", "i", "v", "o",
        "s", "m", "a",
    ],
    maybe: &["jr", "sen", "co", "str"],
    numbered: &["nr", "s", "abs", "art", "bd", "kap", "abb", "tab", "ziff", "anm", "aufl"],
    beginnings: &[
        "aber", "als", "am", "an", "auch", "auf", "bei", "da", "damit", "danach", "dann", "das",
        "dass", "dazu", "dem", "den", "der", "die", "dies", "diese", "dieser", "dieses", "doch",
        "dort", "ein", "eine", "einen", "einer", "er", "es", "für", "hier", "ich", "ihr", "im",
        "in", "ist", "jede", "jeder", "jedes", "kann", "man", "mit", "nach", "nun", "nur", "ob",
        "oder", "ohne", "seit", "sie", "sind", "so", "und", "vom", "von", "was", "weil", "wenn",
        "wer", "wie", "wir", "wird", "wo", "zu", "zum", "zur",
    ],
    has_ordinals: true,
    ..COMMON
};

const FRENCH: LanguageCustoms = LanguageCustoms {
    never: &[
        "mm", "mme", "mmes", "mlle", "mlles", "dr", "pr", "prof", "me", "mgr", "st", "ste", "cf",
        "p.ex", "c.à.d", "env", "bd", "av", "boul", "hab", "ex",
    ],
    maybe: &["ph.d", "cie"],
    numbered: &[
        "n", "no", "nos", "p", "pp", "art", "fig", "vol", "chap", "t", "tél", "janv", "févr",
    ],
    beginnings: &[
        "à", "après", "au", "aussi", "avec", "c", "car", "ce", "cela", "ces", "cet", "cette",
        "comme", "dans", "de", "depuis", "des", "donc", "elle", "elles", "en", "ensuite", "est",
        "et", "il", "ils", "j", "je", "l", "la", "le", "les", "leur", "lorsque", "mais", "mon",
        "ne", "nous", "on", "or", "ou", "par", "pour", "puis", "quand", "que", "qui", "sa", "sans",
        "selon", "ses", "si", "son", "sur", "tous", "tout", "tu", "un", "une", "vous", "voici",
    ],
    has_spaced_quotes: true,
    ..COMMON
};

const SPANISH: LanguageCustoms = LanguageCustoms {
    never: &[
        "sr", "sra", "sres", "sras", "srta", "dr", "dra", "dres", "prof", "profa", "lic", "ing",
        "arq", "gral", "cnel", "dña", "ud", "uds", "vd", "vds", "av", "avda", "mons", "sto", "sta",
        "p.ej", "cf", "aprox",
    ],
    maybe: &["ee.uu", "cía", "ltda", "ph.d"],
    numbered: &["n", "no", "núm", "nro", "p", "pág", "págs", "art", "fig", "vol", "cap", "tel"],
    beginnings: &[
        "a", "ahora", "al", "así", "aunque", "como", "con", "cuando", "de", "del", "desde",
        "después", "el", "él", "ella", "ellos", "en", "entonces", "es", "esa", "ese", "esta",
        "este", "esto", "estos", "hay", "hoy", "la", "las", "le", "lo", "los", "luego", "más",
        "me", "mi", "muy", "no", "nos", "o", "para", "pero", "por", "porque", "que", "qué", "se",
        "según", "si", "sí", "sin", "su", "sus", "también", "tu", "un", "una", "y", "ya", "yo",
    ],
    ..COMMON
};

const ITALIAN: LanguageCustoms = LanguageCustoms {
    never: &[
        "sig", "sigg", "sig.ra", "sig.na", "dott", "dott.ssa", "dr", "prof", "prof.ssa", "avv",
        "ing", "arch", "geom", "rag", "on", "sen", "mons", "es", "p.es", "cfr", "ca", "s",
    ],
    maybe: &["s.p.a", "s.r.l", "ph.d"],
    numbered: &["n", "nr", "p", "pp", "pag", "art", "fig", "vol", "cap", "tel"],
    beginnings: &[
        "a", "ad", "al", "alla", "anche", "c", "che", "chi", "ci", "come", "con", "così", "da",
        "dal", "del", "di", "dopo", "e", "è", "ed", "egli", "ella", "era", "gli", "ha", "i", "il",
        "in", "infine", "io", "l", "la", "le", "lei", "lo", "loro", "lui", "ma", "nel", "nella",
        "noi", "non", "o", "ogni", "oggi", "per", "perché", "più", "poi", "quando", "questa",
        "questo", "se", "senza", "si", "sono", "su", "un", "una", "uno", "voi",
    ],
    ..COMMON
};

const PORTUGUESE: LanguageCustoms = LanguageCustoms {
    never: &[
        "sr", "sra", "srs", "sras", "srta", "dr", "dra", "drs", "prof", "profa", "eng", "arq",
        "gen", "cel", "exmo", "exma", "av", "p.ex", "cf", "aprox", "sto", "sta",
    ],
    maybe: &["ltda", "cia", "e.u.a", "ph.d"],
    numbered: &["n", "no", "núm", "p", "pág", "págs", "art", "fig", "vol", "cap", "tel"],
    beginnings: &[
        "a", "agora", "ainda", "ao", "após", "as", "até", "com", "como", "da", "de", "depois",
        "do", "e", "é", "ela", "elas", "ele", "eles", "em", "então", "essa", "esse", "esta",
        "este", "eu", "foi", "há", "hoje", "isso", "isto", "já", "mais", "mas", "na", "não", "no",
        "nós", "o", "os", "ou", "para", "pela", "pelo", "por", "porque", "quando", "que", "se",
        "segundo", "sem", "seu", "sua", "também", "um", "uma", "você",
    ],
    ..COMMON
};

const DUTCH: LanguageCustoms = LanguageCustoms {
    never: &[
        "dhr", "mevr", "mw", "mej", "dr", "drs", "prof", "ir", "ing", "mr", "st", "bijv", "bv",
        "ca", "resp", "evt", "incl", "excl", "vgl", "d.w.z", "o.a", "t.a.v", "i.p.v", "m.b.t",
        "t.o.v", "z.g", "n.a.v", "i.v.m",
    ],
    maybe: &["b.v", "n.v", "ph.d"],
    numbered: &["nr", "nrs", "blz", "p", "art", "fig", "afb", "hfst", "tel"],
    beginnings: &[
        "aan", "al", "als", "bij", "daar", "daarna", "dan", "dat", "de", "deze", "die", "dit",
        "door", "een", "elk", "elke", "en", "er", "haar", "heeft", "het", "hier", "hij", "hoe",
        "hun", "ik", "in", "is", "je", "kan", "maar", "men", "met", "mijn", "na", "naar", "niet",
        "nu", "of", "om", "onder", "ook", "op", "over", "sinds", "te", "toen", "tot", "u", "uit",
        "van", "veel", "volgens", "voor", "waar", "wat", "we", "wij", "ze", "zij", "zijn", "zo",
    ],
    ..COMMON
};
