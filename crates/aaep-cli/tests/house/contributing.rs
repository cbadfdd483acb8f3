//! The pages for contributors name files and functions that exist.

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
fn a_name_that_does_not_exist_is_noticed() {
    let page = "See `crates/aaep-engine/src/engine.rs`, `handle`, then `crates/nowhere.rs`.";
    assert_eq!(wrong_names(page), ["crates/nowhere.rs does not exist"]);
    let page = "`crates/aaep-engine/src/engine.rs`, `mishandle`";
    assert_eq!(wrong_names(page), ["crates/aaep-engine/src/engine.rs has no function mishandle"]);
}
