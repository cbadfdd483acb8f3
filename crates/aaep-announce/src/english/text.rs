//! What is said about the form of a text: code, diffs, tables, links, lists, and what is shortened or left out.

/// A block of code: in which language, if that is known, and how long.
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

/// What people call a language, by what stands at the beginning of a block of code.
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

/// A change of which no file is known.
pub(crate) const CHANGE: &str = "Change";
/// Stands after the file.
pub(crate) const BINARY: &str = ", binary";

/// How many lines of a file changed; nothing if none did.
pub(crate) fn changed_lines(added: usize, removed: usize) -> String {
    let lines = |count: usize| if count == 1 { "line" } else { "lines" };
    match (added, removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("{added} {} added", lines(added)),
        (0, removed) => format!("{removed} {} removed", lines(removed)),
        (added, removed) => format!("{added} {} added, {removed} removed", lines(added)),
    }
}

/// Where a file changed: in one place, in places that are all named, or in many.
pub(crate) fn at_line(line: &str) -> String {
    format!(", at line {line}")
}

pub(crate) fn at_lines(lines: &[String]) -> String {
    format!(", in {} places, at lines {}", lines.len(), lines.join(" and "))
}

pub(crate) fn in_places(places: usize, first: &str) -> String {
    format!(", in {places} places, the first at line {first}")
}

/// Stands before a changed line.
pub(crate) const ADDED: &str = "Added:";
pub(crate) const REMOVED: &str = "Removed:";

pub(crate) fn lines_not_read(count: usize) -> String {
    format!("{count} more lines are not read.")
}

/// A table begins.
pub(crate) fn table(columns: usize) -> String {
    match columns {
        1 => "Table, 1 column.".to_owned(),
        columns => format!("Table, {columns} columns."),
    }
}

pub(crate) fn cells_not_read(count: usize) -> String {
    format!("{count} more cells are not read")
}

/// Rows that are only counted.
pub(crate) fn more_rows(count: usize) -> String {
    match count {
        1 => "1 more row.".to_owned(),
        count => format!("{count} more rows."),
    }
}

/// Stands before a quotation.
pub(crate) const QUOTE: &str = "Quote:";
/// A task of a list, by its box.
pub(crate) const TO_DO: &str = "to do";
pub(crate) const DONE: &str = "done";

/// What stands where struck text begins and ends.
pub(crate) const STRUCK: &str = "(struck out:";
pub(crate) const STRUCK_END: &str = ", end struck out)";
/// Stands before a number or a word above the line.
pub(crate) const SUPERSCRIPT: &str = "superscript";
pub(crate) const PICTURE: &str = "picture";
/// Stands before the name of a reference, where it says where it leads.
pub(crate) const LINK: &str = "link";
/// Stands between the text of a link and the name of its reference.
pub(crate) const BY_REFERENCE: &str = ", link";
/// Stands between the text of a link and its address.
pub(crate) const LEADS_TO: &str = ", which leads to";
/// Stands before the title of a link.
pub(crate) const TITLED: &str = ", titled";

/// An address that has the name of a user.
pub(crate) fn address_with_user(address: &str, user: &str) -> String {
    format!("{address}, with the name {user}")
}

/// The first and the last digits of a hash.
pub(crate) fn and_so_on(first: &str, last: &str) -> String {
    format!("{first} and so on to {last}")
}

/// A place in a file.
pub(crate) fn place(file: &str, line: &str, column: Option<&str>) -> String {
    match column {
        Some(column) => format!("{file} line {line} column {column}"),
        None => format!("{file} line {line}"),
    }
}

/// Stands after something of which the rest is not said.
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
