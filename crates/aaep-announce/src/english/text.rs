//! The form of a text: code, diffs, tables, links, lists, and shortened or omitted text.

/// A block of code: its language, if known, and its length.
pub(crate) fn code(language: Option<&str>, lines: usize, is_empty: bool) -> String {
    let what = match language {
        Some(language) => format!("{language} code"),
        None => "code".to_owned(),
    };
    match lines {
        0 => format!("{what}, empty"),
        1 if is_empty => format!("{what}, 1 empty line"),
        1 => what,
        lines => format!("{what}, {lines} lines"),
    }
}

pub(crate) const END_OF_CODE: &str = "End of code.";
pub(crate) const NOT_ALL_READ: &str = "Not all of it is read.";

/// The spoken name of a programming language, from its tag at the beginning of a code block.
pub(crate) fn programming_language(name: &str) -> Option<&'static str> {
    Some(match name {
        "rs" | "rust" => "Rust",
        "py" | "python" | "python3" => "Python",
        "js" | "javascript" | "jsx" | "mjs" => "JavaScript",
        "ts" | "typescript" | "tsx" => "TypeScript",
        "sh" | "bash" | "zsh" | "shell" | "console" | "terminal" | "shell-session" => "shell",
        "ps1" | "powershell" => "PowerShell",
        "c" => "C",
        "cpp" | "c++" | "cc" => "C plus plus",
        "cs" | "csharp" | "c#" => "C sharp",
        "fs" | "fsharp" | "f#" => "F sharp",
        "go" | "golang" => "Go",
        "java" => "Java",
        "kt" | "kotlin" => "Kotlin",
        "swift" => "Swift",
        "rb" | "ruby" => "Ruby",
        "php" => "PHP",
        "sql" => "SQL",
        "json" | "jsonc" | "json5" => "JSON",
        "yaml" | "yml" => "YAML",
        "toml" => "TOML",
        "xml" => "XML",
        "html" => "HTML",
        "css" | "scss" => "CSS",
        "md" | "markdown" => "Markdown",
        "dockerfile" | "docker" => "Docker",
        "diff" | "patch" => "diff",
        _ => return None,
    })
}

/// What happened to a file.
pub(crate) fn renamed(from: &str, to: &str) -> String {
    format!("{from} renamed to {to}")
}

pub(crate) fn change_in(file: &str) -> String {
    format!("Change in {file}")
}

pub(crate) fn new_file(file: &str) -> String {
    format!("New file {file}")
}

pub(crate) fn deleted_file(file: &str) -> String {
    format!("Deleted file {file}")
}

/// A change of an unknown file.
pub(crate) const CHANGE: &str = "Change";
/// Follows the file.
pub(crate) const BINARY: &str = ", binary";

/// How many lines of a file changed; empty if none did.
pub(crate) fn changed_lines(added: usize, removed: usize) -> String {
    let lines = |count: usize| if count == 1 { "line" } else { "lines" };
    match (added, removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("{added} {} added", lines(added)),
        (0, removed) => format!("{removed} {} removed", lines(removed)),
        (added, removed) => format!("{added} {} added, {removed} removed", lines(added)),
    }
}

/// Where a file changed: in one place, in a few places that are named, or in many.
pub(crate) fn at_line(line: &str) -> String {
    format!(", at line {line}")
}

pub(crate) fn at_lines(lines: &[String]) -> String {
    format!(", in {} places, at lines {}", lines.len(), lines.join(" and "))
}

pub(crate) fn in_places(places: usize, first: &str) -> String {
    format!(", in {places} places, the first at line {first}")
}

/// Precedes a changed line.
pub(crate) const ADDED: &str = "Added:";
pub(crate) const REMOVED: &str = "Removed:";

pub(crate) fn lines_not_read(count: usize) -> String {
    format!("{count} more lines are not read.")
}

/// The beginning of a table.
pub(crate) fn table(columns: usize) -> String {
    match columns {
        1 => "Table, 1 column.".to_owned(),
        columns => format!("Table, {columns} columns."),
    }
}

pub(crate) fn cells_not_read(count: usize) -> String {
    format!("{count} more cells are not read")
}

/// How many rows are not read out.
pub(crate) fn more_rows(count: usize) -> String {
    match count {
        1 => "1 more row.".to_owned(),
        count => format!("{count} more rows."),
    }
}

/// Precedes a quotation.
pub(crate) const QUOTE: &str = "Quote:";
/// A task in a list, by its check box.
pub(crate) const TO_DO: &str = "to do";
pub(crate) const DONE: &str = "done";

/// Surround struck-out text.
pub(crate) const STRUCK: &str = "(struck out:";
pub(crate) const STRUCK_END: &str = ", end struck out)";
/// Precedes superscript text.
pub(crate) const SUPERSCRIPT: &str = "superscript";
pub(crate) const PICTURE: &str = "picture";
/// Precedes the name of a reference that a link leads to.
pub(crate) const LINK: &str = "link";
/// Between the text of a link and the name of its reference.
pub(crate) const BY_REFERENCE: &str = ", link";
/// Between the text of a link and its address.
pub(crate) const LEADS_TO: &str = ", which leads to";
/// Precedes the title of a link.
pub(crate) const TITLED: &str = ", titled";

/// An address with a user name.
pub(crate) fn address_with_user(address: &str, user: &str) -> String {
    format!("{address}, with the name {user}")
}

/// The first and the last digits of a hash.
pub(crate) fn and_so_on(first: &str, last: &str) -> String {
    format!("{first} and so on to {last}")
}

/// A position in a file.
pub(crate) fn place(file: &str, line: &str, column: Option<&str>) -> String {
    match column {
        Some(column) => format!("{file} line {line} column {column}"),
        None => format!("{file} line {line}"),
    }
}

/// Follows text whose rest is omitted.
pub(crate) const CUT: &str = ", cut";

pub(crate) fn cut_of(length: &str) -> String {
    format!(", cut, {length} characters in all")
}

/// The same before the last characters.
pub(crate) fn cut_before_last(length: &str) -> String {
    format!(", cut, {length} characters in all, the last are")
}

pub(crate) fn left_out(count: &str) -> String {
    format!("{count} more characters are left out.")
}
