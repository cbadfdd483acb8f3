//! Gives back what an agent asked from what a device was given: names become marks, groups and single spaces go.

/// What a voice says for a mark or a hidden character.
const NAMES: &[(&str, char)] = &[
    ("exclamation mark", '!'),
    ("quote", '"'),
    ("hash", '#'),
    ("dollar", '$'),
    ("percent", '%'),
    ("ampersand", '&'),
    ("apostrophe", '\''),
    ("left parenthesis", '('),
    ("right parenthesis", ')'),
    ("star", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("dash", '-'),
    ("dot", '.'),
    ("slash", '/'),
    ("colon", ':'),
    ("semicolon", ';'),
    ("less than", '<'),
    ("equals", '='),
    ("greater than", '>'),
    ("question mark", '?'),
    ("at", '@'),
    ("left bracket", '['),
    ("backslash", '\\'),
    ("right bracket", ']'),
    ("caret", '^'),
    ("underscore", '_'),
    ("backtick", '`'),
    ("left brace", '{'),
    ("pipe", '|'),
    ("right brace", '}'),
    ("tilde", '~'),
    ("em dash", '—'),
    ("left quote", '“'),
    ("right quote", '”'),
    ("at most", '≤'),
    ("not equal to", '≠'),
    ("hyphen", '‐'),
    ("non-breaking hyphen", '\u{2011}'),
    ("low quote", '„'),
    ("left angle quote", '‹'),
    ("right angle quote", '›'),
    ("multiplication sign", '×'),
    ("division sign", '÷'),
    ("plus or minus", '±'),
];

/// Blanks other than one space between words: their names, and a visible character in their place.
const BLANKS: &[(&str, char, char)] = &[
    ("space", ' ', '␠'),
    ("tab", '\t', '␉'),
    ("no-break space", '\u{a0}', '⍽'),
    ("ideographic space", '\u{3000}', '⎵'),
    ("line break", '\n', '␤'),
];

/// The most blanks of one kind in a row.
const MOST_BLANKS: usize = 80;

/// Hidden characters, by the names that stand in brackets where text is shown.
const HIDDEN: &[(&str, char)] = &[
    ("escape", '\u{1b}'),
    ("null", '\0'),
    ("right-to-left override", '\u{202e}'),
    ("zero width space", '\u{200b}'),
];

/// The visible characters of a text, in order.
pub(crate) fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The characters of a text in order, without single spaces between words, and with other blanks made visible.
fn marked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.trim_start();
        let run = &rest[..rest.len() - after.len()];
        if run.is_empty() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        if run != " " || out.is_empty() || after.is_empty() {
            let visible = |c: char| BLANKS.iter().find(|(_, it, _)| *it == c).map(|(_, _, it)| *it);
            out.extend(run.chars().map(|c| visible(c).expect("a blank with a name")));
        }
        rest = after;
    }
    out
}

/// Undoes what makes hidden characters visible. A name may be cut anywhere, as on a small display.
pub(crate) fn shown(given: &str) -> String {
    let mut text = dense(given);
    for (name, c) in HIDDEN {
        text = text.replace(&format!("[{}]", dense(name)), &c.to_string());
    }
    for (name, _, visible) in BLANKS {
        let name = dense(name);
        text = text.replace(&format!("[{name}]"), &visible.to_string());
        for count in 2..=MOST_BLANKS {
            let all = visible.to_string().repeat(count);
            text = text.replace(&format!("[{count}{name}s]"), &all);
        }
    }
    text
}

/// Undoes the names, the counts and the groups of what a voice was given.
pub(crate) fn heard(given: &str) -> String {
    let words: Vec<&str> = given.split(' ').collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let count = word.parse::<usize>().ok().filter(|_| words.get(at + 1) == Some(&"times"));
        if let Some((count, (length, c, end))) =
            count.and_then(|count| Some((count, name_at(&words, at + 2)?)))
        {
            out.extend(std::iter::repeat_n(c, count));
            out.push_str(end);
            at += length + 2;
        } else if let Some((length, blanks)) = blanks_at(&words, at) {
            out.push_str(&blanks);
            at += length;
        } else if let Some((length, c, end)) = name_at(&words, at) {
            out.push(c);
            out.push_str(end);
            at += length;
        } else {
            // Between groups there is a pause.
            let is_group = word.chars().count() == 2 && word.ends_with(',');
            let word = if is_group { word.trim_end_matches(',') } else { word };
            out.push_str(if word == "capital" { "" } else { word });
            at += 1;
        }
    }
    dense(&out)
}

/// The blanks whose name begins here, once or counted: how many words it has, and the blanks made visible.
fn blanks_at(words: &[&str], at: usize) -> Option<(usize, String)> {
    BLANKS.iter().find_map(|(name, _, visible)| {
        let is_here = |at: usize, name: &str| {
            let parts: Vec<&str> = name.split(' ').collect();
            (words.get(at..at + parts.len()) == Some(&parts)).then_some(parts.len())
        };
        if let Some(length) = is_here(at, name) {
            return Some((length, visible.to_string()));
        }
        let count: usize = words.get(at)?.parse().ok()?;
        let length = is_here(at + 1, &format!("{name}s"))?;
        Some((length + 1, visible.to_string().repeat(count)))
    })
}

/// The name that begins here: how many words it has, what it stands for, and the mark that ends the clause after it.
fn name_at<'a>(words: &[&'a str], at: usize) -> Option<(usize, char, &'a str)> {
    let all = NAMES.iter().chain(HIDDEN);
    let matching = all.filter_map(|(name, c)| {
        let parts: Vec<&str> = name.split(' ').collect();
        let found = words.get(at..at + parts.len())?;
        let (last, before) = found.split_last()?;
        let (expected, start) = parts.split_last()?;
        let end = last.strip_prefix(expected)?;
        let is_end = matches!(end, "" | "." | "," | ";" | ":" | "?" | "!");
        (before == start && is_end).then_some((parts.len(), *c, end))
    });
    matching.max_by_key(|(length, _, _)| *length)
}

/// Whether all of a text is in what was given, each character in its order and nothing of ours in between.
pub(crate) fn holds(given: &str, text: &str) -> bool {
    given.contains(&marked(text))
}
