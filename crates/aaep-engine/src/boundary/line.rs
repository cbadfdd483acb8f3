//! Lines, blank lines between paragraphs, and fenced code.
//!
//! A paragraph ends with a blank line (white space counts as blank) or U+2029. Code between fences
//! is never cut inside a line. No other markup is recognized than what tells prose from code and
//! headings, and nothing is decided before the first visible character of a later line.

use super::held::TextPosition;

/// A line shorter than this was not wrapped: its author ended it on purpose.
const WRAPPED_LINE_CHARS: usize = 40;

/// What a character says about the white space before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineTurn {
    /// The line goes on.
    Inside,
    /// A line ended at this position. `is_long` says whether it was a long line of prose.
    Line { position: TextPosition, is_long: bool },
    /// A paragraph ended at this position.
    Paragraph(TextPosition),
}

/// The line ends since the last character that is not white space.
#[derive(Clone, Copy, Debug)]
struct LineGap {
    newlines: u8,
    end: TextPosition,
    ends_with_return: bool,
    is_long: bool,
}

/// How the line begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum LineLead {
    /// With white space so far.
    #[default]
    Blank,
    /// With backticks or tildes, which form a fence if there are at least three.
    Fence { mark: char, count: usize, is_over: bool, has_more: bool },
    /// With the markup of a heading or a table row, whose lines are never wrapped.
    Markup,
    /// With anything else.
    Prose,
}

/// Tracks in which line the text is, and whether it is code.
#[derive(Debug, Default)]
pub(super) struct LineTracker {
    start: TextPosition,
    lead: LineLead,
    gap: Option<LineGap>,
    /// The character and the length of the fence that opened the code.
    fence: Option<(char, usize)>,
}

impl LineTracker {
    /// Where the current line begins.
    pub(super) fn start(&self) -> TextPosition {
        self.start
    }

    /// Whether it is decided what the current line is, so that only its end matters.
    pub(super) fn is_inside(&self) -> bool {
        self.gap.is_none() && matches!(self.lead, LineLead::Markup | LineLead::Prose)
    }

    /// Whether the current line is code or a fence.
    pub(super) fn is_code(&self) -> bool {
        self.fence.is_some() || matches!(self.lead, LineLead::Fence { count: 3.., .. })
    }

    /// Reads a character that stands between the two positions.
    pub(super) fn step(&mut self, c: char, at: TextPosition, after: TextPosition) -> LineTurn {
        if is_newline(c) {
            self.end_line(c, at, after);
            return LineTurn::Inside;
        }
        if c.is_whitespace() {
            if let LineLead::Fence { is_over, .. } = &mut self.lead {
                *is_over = true;
            }
            return LineTurn::Inside;
        }
        self.lead = self.lead(c);
        match self.gap.take() {
            None => LineTurn::Inside,
            Some(gap) if gap.newlines > 1 => LineTurn::Paragraph(gap.end),
            Some(gap) => LineTurn::Line { position: gap.end, is_long: gap.is_long },
        }
    }

    fn end_line(&mut self, c: char, at: TextPosition, after: TextPosition) {
        let begun = self.gap.take();
        if let Some(gap) = begun
            && gap.ends_with_return
            && c == '\n'
            && gap.end == at
        {
            self.gap = Some(LineGap { end: after, ends_with_return: false, ..gap });
            self.start = after;
            return;
        }
        let is_prose = self.lead == LineLead::Prose && !self.is_code();
        let is_long = is_prose && at.chars - self.start.chars >= WRAPPED_LINE_CHARS;
        let ended = if c == '\u{2029}' { 2 } else { 1 };
        self.gap = Some(LineGap {
            newlines: begun.map_or(0, |gap| gap.newlines).saturating_add(ended),
            end: after,
            ends_with_return: c == '\r',
            is_long: begun.map_or(is_long, |gap| gap.is_long),
        });
        self.turn_fence();
        self.lead = LineLead::Blank;
        self.start = after;
    }

    /// Opens or closes the code block if the line that ends is a fence.
    fn turn_fence(&mut self) {
        if let LineLead::Fence { mark, count: count @ 3.., has_more, .. } = self.lead {
            match self.fence {
                None => self.fence = Some((mark, count)),
                Some((opened, length)) if opened == mark && count >= length && !has_more => {
                    self.fence = None;
                }
                Some(_) => {}
            }
        }
    }

    fn lead(&self, c: char) -> LineLead {
        match self.lead {
            LineLead::Blank => match c {
                '`' | '~' => LineLead::Fence { mark: c, count: 1, is_over: false, has_more: false },
                '#' | '|' => LineLead::Markup,
                _ => LineLead::Prose,
            },
            LineLead::Fence { mark, count, is_over: false, has_more: false } if c == mark => {
                LineLead::Fence {
                    mark,
                    count: count.saturating_add(1),
                    is_over: false,
                    has_more: false,
                }
            }
            // Three backticks with more backticks later on the line are inline code in prose.
            LineLead::Fence { mark: '`', .. } if c == '`' => LineLead::Prose,
            LineLead::Fence { mark, count: count @ 3.., is_over, .. } => {
                LineLead::Fence { mark, count, is_over, has_more: true }
            }
            LineLead::Fence { .. } | LineLead::Prose => LineLead::Prose,
            LineLead::Markup => LineLead::Markup,
        }
    }
}

/// Whether the character ends a line. `\r\n` counts as one end.
fn is_newline(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
