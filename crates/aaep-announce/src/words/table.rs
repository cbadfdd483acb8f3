//! A table in words: row by row, each cell with the name of its column.

use super::Style;
use super::inline::{cut, prose};
use super::own::own;
use super::symbol::meaning;
use crate::english::text;

/// How many columns are said.
const MAX_COLUMNS: usize = 32;
/// How many rows are said; the others are counted.
pub(super) const MAX_ROWS: usize = 20;
/// How much of a cell is said, in bytes.
const MAX_CELL: usize = 400;

/// A table that is being read.
#[derive(Debug, Clone)]
pub(super) struct TextTable {
    columns: Vec<String>,
    rows: usize,
}

impl TextTable {
    /// Begins a table with its heading.
    pub(super) fn new(heading: &str, style: Style) -> Self {
        let columns = cells(heading).map(|it| cell_said(it, style)).collect();
        TextTable { columns, rows: 0 }
    }

    /// The words before the first row.
    pub(super) fn opening(&self) -> String {
        own(&text::table(self.columns.len()))
    }

    /// The next row in words; `None` for a row that is only counted.
    pub(super) fn row(&mut self, line: &str, style: Style) -> Option<String> {
        if is_separator(line) {
            return None;
        }
        self.rows += 1;
        if self.rows > MAX_ROWS && !style.is_exact {
            return None;
        }
        let mut said = Vec::new();
        for (at, cell) in cells(line).enumerate() {
            let cell = cell_said(cell, style);
            if cell.is_empty() {
                continue;
            }
            match self.columns.get(at).filter(|column| !column.is_empty()) {
                Some(column) => said.push(format!("{column} {cell}")),
                None => said.push(cell),
            }
        }
        let more = all_cells(line).count().saturating_sub(MAX_COLUMNS);
        if more > 0 {
            said.push(own(&text::cells_not_read(more)));
        }
        (!said.is_empty()).then(|| format!("{}.", said.join(", ")))
    }

    /// The words after the last row.
    pub(super) fn closing(&self, style: Style) -> Option<String> {
        match self.rows.saturating_sub(MAX_ROWS) {
            _ if style.is_exact => None,
            0 => None,
            more => Some(own(&text::more_rows(more))),
        }
    }
}

fn cell_said(cell: &str, style: Style) -> String {
    if let Some(meaning) = meaning(cell) {
        return own(meaning);
    }
    let read = cut(cell, MAX_CELL);
    let said = prose(read, style);
    let said = said.strip_suffix('.').unwrap_or(&said);
    if read.len() < cell.len() { format!("{said}{}", own(text::CUT)) } else { said.to_owned() }
}

/// Whether a line separates the heading of a table from its rows.
pub(super) fn is_separator(line: &str) -> bool {
    let line = line.trim();
    line.contains('|')
        && line.contains('-')
        && line.len() < 4096
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// The cells of a line, up to the limit.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    all_cells(line).take(MAX_COLUMNS)
}

fn all_cells(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').unwrap_or(line);
    RowCells { rest: Some(line) }
}

struct RowCells<'t> {
    rest: Option<&'t str>,
}

impl<'t> Iterator for RowCells<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.rest?;
        let mut is_escaped = false;
        for (at, c) in rest.char_indices() {
            if c == '|' && !is_escaped {
                self.rest = rest.get(at + 1..);
                return rest.get(..at).map(str::trim);
            }
            is_escaped = c == '\\' && !is_escaped;
        }
        self.rest = None;
        Some(rest.trim())
    }
}
