//! Gives back what an agent asked from what a device was given: names become marks, groups and blanks go.

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
];

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

/// Undoes what makes hidden characters visible.
pub(crate) fn shown(given: &str) -> String {
    let mut text = given.replace("[line break]", "");
    for (name, c) in HIDDEN {
        text = text.replace(&format!("[{name}]"), &c.to_string());
    }
    dense(&text)
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
        } else if words.get(at..at + 2) == Some(&["line", "break"]) {
            at += 2;
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
    given.contains(&dense(text))
}
