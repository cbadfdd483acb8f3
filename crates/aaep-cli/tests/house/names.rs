//! One thing, one name: what `docs/glossary.md` promises about the names of types.

use std::collections::{BTreeMap, BTreeSet};

use super::{project_files, read};

/// Words that say nothing about what a type is.
const BANNED: &[&str] = &[
    "Told", "Heard", "Said", "Came", "Then", "Rest", "Known", "Place", "Kind", "Item", "Held",
    "Wish", "By", "Up", "Over",
];

/// Names that may be in two crates, because both sides of one conversation have one.
const SHARED: &[&str] = &[];

/// How many of a hundred names may be a single word.
const MAX_ONE_WORD_PERCENT: usize = 25;

/// A type that the project ships.
#[derive(Debug, PartialEq, Eq)]
struct NamedType {
    name: String,
    crate_name: String,
    file: String,
}

/// The name that a line gives to a type, if it declares one.
fn declared(line: &str) -> Option<&str> {
    let is_outermost = !line.starts_with(' ');
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub") {
        rest = after.strip_prefix('(').map_or(after, |it| it.split_once(')').map_or("", |it| it.1));
        rest = rest.trim_start();
    }
    let (word, rest) = rest.split_once(' ')?;
    let declares = ["struct", "enum", "trait", "union"].contains(&word);
    if !(declares || (word == "type" && is_outermost)) {
        return None;
    }
    let end = rest.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let name = &rest[..end];
    name.starts_with(|it: char| it.is_ascii_uppercase()).then_some(name)
}

/// The types of all crates, without those of tests.
fn types() -> Vec<NamedType> {
    let mut types = Vec::new();
    for file in project_files() {
        let text = file.to_string_lossy().into_owned();
        let mut parts = text.split('/');
        let (folder, crate_name) = (parts.next(), parts.next().unwrap_or_default().to_owned());
        let is_shipped = ["crates", "bindings"].contains(&folder.unwrap_or_default())
            && text.contains("/src/")
            && file.extension().is_some_and(|it| it == "rs")
            && !text.contains("/tests/")
            && !text.ends_with("/tests.rs");
        if !is_shipped {
            continue;
        }
        for line in read(&file).lines().take_while(|line| *line != "mod tests {") {
            if let Some(name) = declared(line) {
                types.push(NamedType {
                    name: name.to_owned(),
                    crate_name: crate_name.clone(),
                    file: text.clone(),
                });
            }
        }
    }
    assert!(types.len() > 500, "only {} types were found", types.len());
    types
}

/// How many words a name has: `AskOutcome` has two.
fn words(name: &str) -> usize {
    name.chars().filter(char::is_ascii_uppercase).count()
}

#[test]
fn no_type_has_a_name_that_says_nothing() {
    let types = types();
    let banned: Vec<_> = types.iter().filter(|it| BANNED.contains(&it.name.as_str())).collect();
    assert!(banned.is_empty(), "{banned:#?}");
}

#[test]
fn no_name_of_a_type_is_in_two_crates() {
    let types = types();
    let mut crates: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for it in &types {
        crates.entry(&it.name).or_default().insert(&it.crate_name);
    }
    crates.retain(|name, crates| crates.len() > 1 && !SHARED.contains(name));
    assert!(crates.is_empty(), "{} names: {crates:#?}", crates.len());
}

#[test]
fn few_names_of_types_are_a_single_word() {
    let types = types();
    let one_word = types.iter().filter(|it| words(&it.name) == 1).count();
    let percent = 100 * one_word / types.len();
    assert!(
        percent <= MAX_ONE_WORD_PERCENT,
        "{one_word} of {} types, {percent} percent",
        types.len()
    );
}

/// The imports of a file that begin in this project, each as one line.
fn own_imports(text: &str) -> Vec<String> {
    let mut imports = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(begin) = line.trim_start().find("use ").filter(|at| *at < 24) else { continue };
        let visibility = &line.trim_start()[..begin];
        if !(visibility.is_empty() || visibility.starts_with("pub")) {
            continue;
        }
        let mut import = line.trim_start()[begin + 4..].to_owned();
        while !import.contains(';') {
            let Some(more) = lines.next() else { break };
            import.push(' ');
            import.push_str(more.trim());
        }
        let first = import.split("::").next().unwrap_or_default();
        let is_module = text.contains(&format!("mod {first};"));
        if first.starts_with("aaep") || ["crate", "super", "self"].contains(&first) || is_module {
            imports.push(import);
        }
    }
    imports
}

/// The types that an import gives another name.
fn renamed(import: &str) -> Vec<&str> {
    let parts = import.split([',', '{', '}', ';']).filter_map(|it| it.split_once(" as "));
    let names = parts.map(|(path, _)| path.trim().rsplit("::").next().unwrap_or_default());
    let is_unnamed = |import: &str, name: &str| import.contains(&format!("{name} as _"));
    names.filter(|it| it.starts_with(char::is_uppercase) && !is_unnamed(import, it)).collect()
}

#[test]
fn no_import_gives_one_of_our_types_another_name() {
    let mut found = Vec::new();
    for file in project_files() {
        let path = file.to_string_lossy().into_owned();
        let is_source = file.extension().is_some_and(|it| it == "rs");
        if is_source && path.starts_with("crates") && path.contains("/src/") {
            for import in own_imports(&read(&file)) {
                found.extend(renamed(&import).into_iter().map(|name| format!("{path}: {name}")));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_renaming_import_is_noticed() {
    let text = "use std::fmt::Write as _;\nuse aaep::{\n    Event, Outcome as Wanted,\n};\nmod inner;\npub(crate) use inner::Running as RunningSession;\nuse tungstenite::Message as Frame;";
    let imports = own_imports(text);
    let names: Vec<&str> = imports.iter().flat_map(|it| renamed(it)).collect();
    assert_eq!(names, ["Outcome", "Running"]);
}

#[test]
fn a_declaration_is_told_from_other_lines() {
    for (line, name) in [
        ("pub struct AskOutcome {", Some("AskOutcome")),
        ("    pub(super) enum Presence {", Some("Presence")),
        ("pub(in crate::engine) trait Field<T> {", Some("Field")),
        ("type Digest = [u8; 32];", Some("Digest")),
        ("    type Output = ();", None),
        ("let structure = 1;", None),
        ("/// A struct Name", None),
    ] {
        assert_eq!(declared(line), name, "{line}");
    }
    assert_eq!((words("AskOutcome"), words("Ask")), (2, 1));
}
