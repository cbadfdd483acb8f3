//! A unified diff in words: the file, the size of the change, and its location. Short diffs are read out.

use super::Style;
use super::inline::cut;
use super::own::own;
use super::shorten::shorten;
use crate::english::text;

/// A change of at most this many lines is read out.
const READ_LINES: usize = 4;
/// The longest line that is read out, in bytes.
const MAX_READ_LINE: usize = 160;
/// How many locations of a change are named.
const NAMED_PLACES: usize = 3;
/// How many lines are kept of a change that is read out whole.
const MAX_EXACT_LINES: usize = 200;

/// The change of one file that is being read.
#[derive(Debug, Clone, Default)]
pub(super) struct FileDiff {
    from: Option<String>,
    to: Option<String>,
    is_renamed: bool,
    is_binary: bool,
    added: usize,
    removed: usize,
    /// The line numbers of the first hunks, and the number of all hunks.
    places: Vec<u64>,
    hunks: usize,
    /// How many old and new lines of the hunk are still to come.
    left: Option<(u64, u64)>,
    /// The changed lines, while they are few.
    lines: Vec<(bool, String)>,
    /// Whether lines outside a hunk count, because models write such diffs into code blocks.
    is_loose: bool,
}

/// How a line relates to a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiffLine {
    /// It belongs to the diff.
    Part,
    /// It begins the change of another file.
    Next,
    /// The diff was over before it.
    No,
}

/// Whether this line alone can begin a diff.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with("diff --git ") || hunk(line).is_some()
}

impl FileDiff {
    /// A diff in a code block that is labelled as one.
    pub(super) fn loose() -> Self {
        FileDiff { is_loose: true, ..FileDiff::default() }
    }

    /// The diff of the next file.
    pub(super) fn next(&self) -> Self {
        FileDiff { is_loose: self.is_loose, ..FileDiff::default() }
    }

    /// Takes a line, if it belongs to the change of this file.
    pub(super) fn take(&mut self, line: &str, style: Style) -> DiffLine {
        if let Some((old, new)) = self.left
            && (old > 0 || new > 0)
        {
            return self.changed(line, (old, new), style);
        }
        if let Some((_, old, start, new)) = hunk(line) {
            self.hunks += 1;
            if self.places.len() < NAMED_PLACES {
                self.places.push(start);
            }
            self.left = Some((old, new));
            return DiffLine::Part;
        }
        if line.starts_with("\\ No newline") {
            return DiffLine::Part;
        }
        if self.hunks > 0 || self.is_binary {
            let is_next = line.starts_with("diff --git ") || line.starts_with("--- ");
            return match (is_next, self.is_loose) {
                (true, _) => DiffLine::Next,
                (false, true) => self.unannounced(line, style),
                (false, false) => DiffLine::No,
            };
        }
        match self.header(line) {
            DiffLine::No if self.is_loose => self.unannounced(line, style),
            taken => taken,
        }
    }

    /// Takes a line outside any hunk, in a code block that is labelled as a diff.
    fn unannounced(&mut self, line: &str, style: Style) -> DiffLine {
        self.changed(line, (1, 1), style);
        self.left = None;
        DiffLine::Part
    }

    fn changed(&mut self, line: &str, (old, new): (u64, u64), style: Style) -> DiffLine {
        match line.chars().next() {
            Some('+') => {
                self.added += 1;
                self.keep(true, line, style);
                self.left = Some((old, new.saturating_sub(1)));
            }
            Some('-') => {
                self.removed += 1;
                self.keep(false, line, style);
                self.left = Some((old.saturating_sub(1), new));
            }
            Some(' ') | None => {
                self.left = Some((old.saturating_sub(1), new.saturating_sub(1)));
            }
            Some('\\') => {}
            Some(_) => {
                self.left = None;
                return if line.starts_with("diff --git ") { DiffLine::Next } else { DiffLine::No };
            }
        }
        DiffLine::Part
    }

    fn keep(&mut self, is_added: bool, line: &str, style: Style) {
        let most = if style.is_exact { MAX_EXACT_LINES } else { READ_LINES };
        let text = line.get(1..).unwrap_or_default().trim();
        if self.lines.len() < most && !text.is_empty() {
            let longest = if style.is_exact { MAX_READ_LINE * 4 } else { MAX_READ_LINE };
            let read = cut(text, longest);
            let note = if read.len() < text.len() { own(text::CUT) } else { String::new() };
            self.lines.push((is_added, format!("{read}{note}")));
        }
    }

    fn header(&mut self, line: &str) -> DiffLine {
        let name = |text: &str| {
            let text = text.split('\t').next().unwrap_or_default().trim();
            let text = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/")).unwrap_or(text);
            (text != "/dev/null").then(|| cut(text, MAX_READ_LINE).to_owned())
        };
        if let Some(names) = line.strip_prefix("diff --git ") {
            if self.from.is_some() || self.to.is_some() {
                return DiffLine::Next;
            }
            if let Some((from, to)) = names.split_once(' ') {
                (self.from, self.to) = (name(from), name(to));
            }
        } else if let Some(from) = line.strip_prefix("--- ") {
            self.from = name(from);
        } else if let Some(to) = line.strip_prefix("+++ ") {
            self.to = name(to);
        } else if let Some(from) = line.strip_prefix("rename from ") {
            (self.from, self.is_renamed) = (name(from), true);
        } else if let Some(to) = line.strip_prefix("rename to ") {
            (self.to, self.is_renamed) = (name(to), true);
        } else if line.starts_with("new file mode ") {
            self.from = None;
        } else if line.starts_with("deleted file mode ") {
            self.to = None;
        } else if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
            self.is_binary = true;
        } else {
            let known = ["index ", "similarity index ", "old mode ", "new mode ", "dissimilarity "];
            if !known.iter().any(|it| line.starts_with(it)) {
                return DiffLine::No;
            }
        }
        DiffLine::Part
    }

    /// The change in words.
    pub(super) fn said(&self, style: Style) -> String {
        let mut said = self.what(style);
        if self.is_binary {
            said.push_str(text::BINARY);
        }
        let counts = text::changed_lines(self.added, self.removed);
        if !counts.is_empty() {
            said.extend([", ", &counts]);
        }
        said.push_str(&self.place());
        said = own(&said);
        said.push('.');
        if style.is_exact || self.added + self.removed <= READ_LINES {
            for (is_added, text) in &self.lines {
                said.extend([" ", &*own(if *is_added { text::ADDED } else { text::REMOVED }), " "]);
                said.push_str(&shorten(text, style));
                said.push('.');
            }
        }
        let unread = (self.added + self.removed).saturating_sub(self.lines.len());
        if style.is_exact && unread > 0 {
            said.extend([" ", &*own(&text::lines_not_read(unread))]);
        }
        said
    }

    fn what(&self, style: Style) -> String {
        let name = |it: &String| shorten(it, style);
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if self.is_renamed => text::renamed(&name(from), &name(to)),
            (_, Some(to)) if self.from.is_some() => text::change_in(&name(to)),
            (None, Some(to)) => text::new_file(&name(to)),
            (Some(from), None) => text::deleted_file(&name(from)),
            _ => text::CHANGE.to_owned(),
        }
    }

    fn place(&self) -> String {
        if self.from.is_none() && self.to.is_some() || self.to.is_none() && self.from.is_some() {
            return String::new();
        }
        let places: Vec<String> = self.places.iter().map(u64::to_string).collect();
        match (places.as_slice(), self.hunks) {
            ([], _) => String::new(),
            ([place], _) => text::at_line(place),
            (_, hunks) if hunks <= NAMED_PLACES => text::at_lines(&places),
            ([first, ..], hunks) => text::in_places(hunks, first),
        }
    }
}

/// Old start, old length, new start and new length of a hunk, from its header.
fn hunk(line: &str) -> Option<(u64, u64, u64, u64)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(u64, u64)> {
        match text.split_once(',') {
            Some((start, length)) => Some((start.parse().ok()?, length.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let ((old_start, old), (new_start, new)) = (range(old)?, range(new)?);
    Some((old_start, old, new_start, new))
}
