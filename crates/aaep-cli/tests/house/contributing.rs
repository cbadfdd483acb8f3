//! The pages for contributors, the decisions and the page on security name files, functions and tests that exist.

use std::path::Path;

use super::{project_files, read, root};

/// The text between pairs of backticks on a page, in its order.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2)
}

fn is_path(text: &str) -> bool {
    ["crates/", "docs/", "bench/", "fuzz/", "tools/"].iter().any(|folder| text.starts_with(folder))
}

/// A function of this name is written in this file.
fn has_function(file: &str, name: &str) -> bool {
    let text = read(Path::new(file));
    [format!("fn {name}("), format!("fn {name}<")].iter().any(|it| text.contains(it.as_str()))
}

/// What of a page names a file or a function that does not exist.
fn wrong_names(page: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut file = None;
    for text in quoted(page) {
        if is_path(text) {
            if !root().join(text).exists() {
                wrong.push(format!("{text} does not exist"));
            }
            let is_source = Path::new(text).extension().is_some_and(|it| it == "rs");
            file = Some(text).filter(|it| is_source && root().join(it).exists());
        } else if let Some(file) = file {
            let is_name = text.chars().all(|it| it.is_ascii_lowercase() || it == '_');
            if is_name && !has_function(file, text) {
                wrong.push(format!("{file} has no function {text}"));
            }
        }
    }
    wrong
}

#[test]
fn the_pages_for_contributors_name_what_exists() {
    let pages = project_files();
    let pages: Vec<_> = pages.iter().filter(|it| it.starts_with("docs/contributing")).collect();
    assert!(pages.len() >= 5, "{pages:?}");
    for page in pages {
        let wrong = wrong_names(&read(page));
        assert!(wrong.is_empty(), "{}: {wrong:?}", page.display());
    }
}

#[test]
fn the_page_on_the_delivery_state_has_the_table_of_the_code() {
    let code = read(Path::new("crates/aaep-engine/src/engine/delivery_state.rs"));
    let rows: Vec<&str> = code.lines().filter_map(|it| it.strip_prefix("//! |")).collect();
    let page = read(Path::new("docs/contributing/delivery-state.md"));
    assert!(rows.len() > 10 && page.contains(&format!("|{}", rows.join("\n|"))), "{rows:?}");
}

#[test]
fn a_name_that_does_not_exist_is_noticed() {
    let page = "See `crates/aaep-engine/src/engine.rs`, `handle`, then `crates/nowhere.rs`.";
    assert_eq!(wrong_names(page), ["crates/nowhere.rs does not exist"]);
    let page = "`crates/aaep-engine/src/engine.rs`, `mishandle`";
    assert_eq!(wrong_names(page), ["crates/aaep-engine/src/engine.rs has no function mishandle"]);
}

/// What of a page names a source file, or a test in the form `file.rs::function`, that does not exist. A file may be
/// named from any folder above it.
fn wrong_tests(page: &str, sources: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for text in quoted(page) {
        let (file, function) = match text.split_once("::") {
            Some((file, function)) => (file, Some(function)),
            None => (text, None),
        };
        let is_source = Path::new(file).extension().is_some_and(|it| it == "rs");
        if !is_source || file.contains(char::is_whitespace) {
            continue;
        }
        let is_named = |path: &str| path == file || path.ends_with(&format!("/{file}"));
        let mut found = sources.iter().filter(|(path, _)| is_named(path)).peekable();
        if found.peek().is_none() {
            wrong.push(format!("{file} does not exist"));
        } else if let Some(function) = function {
            let is_there =
                |(_, source): &(String, String)| source.contains(&format!("fn {function}("));
            if !found.any(is_there) {
                wrong.push(format!("{file} has no function {function}"));
            }
        }
    }
    wrong
}

#[test]
fn the_decisions_and_the_page_on_security_name_tests_that_exist() {
    let files = project_files();
    let is_source = |it: &&std::path::PathBuf| it.extension().is_some_and(|it| it == "rs");
    let sources: Vec<(String, String)> =
        files.iter().filter(is_source).map(|it| (it.display().to_string(), read(it))).collect();
    let is_page = |it: &&std::path::PathBuf| {
        it.starts_with("docs/decisions") || it.ends_with("docs/security.md")
    };
    let pages: Vec<_> = files.iter().filter(is_page).collect();
    assert!(pages.len() >= 50, "{pages:?}");
    for page in pages {
        let wrong = wrong_tests(&read(page), &sources);
        assert!(wrong.is_empty(), "{}: {wrong:?}", page.display());
    }
}

#[test]
fn a_test_that_does_not_exist_is_noticed() {
    let sources = [("crates/aaep/src/form.rs".to_owned(), "fn it_holds() {}".to_owned())];
    assert!(wrong_tests("`src/form.rs::it_holds` and `form.rs`", &sources).is_empty());
    assert_eq!(
        wrong_tests("`src/form.rs::it_breaks`, `tests/form.rs`", &sources),
        ["src/form.rs has no function it_breaks", "tests/form.rs does not exist"]
    );
}
