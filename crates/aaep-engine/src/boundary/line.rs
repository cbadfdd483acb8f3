//! Lines, the blank ones between paragraphs, and fenced code.
//!
//! A paragraph ends with a blank line (white space counts as blank) or U+2029. Code between fences
//! is never cut inside a line. It knows no other markup than what tells prose from code and
//! headings, and decides nothing before the first character of the next line with something on it.

use super::held::Position;

/// A line shorter than this was not wrapped: its end was meant.
const WRAPPED_LINE_CHARS: usize = 40;

/// What the first character of something new says about the white space before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Nothing: the line goes on.
    Inside,
    /// A line ended there, which was long and of prose, or not.
    Line { position: Position, is_long: bool },
    /// A paragraph ended there.
    Paragraph(Position),
}

/// The line ends since the last character that is not white space.
#[derive(Clone, Copy, Debug)]
struct Gap {
    newlines: u8,
    end: Position,
    ends_with_return: bool,
    is_long: bool,
}

/// How the line begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Lead {
    /// With white space so far.
    #[default]
    Blank,
    /// With backticks or tildes, which are a fence if there are three.
    Fence { mark: char, count: usize, is_over: bool, has_more: bool },
    /// As a heading or a row of a table, which is not wrapped.
    Markup,
    /// With anything else.
    Prose,
}

/// Where in its lines the text is.
#[derive(Debug, Default)]
pub(super) struct Lines {
    start: Position,
    lead: Lead,
    gap: Option<Gap>,
    /// The mark and the length of the fence that opened the code.
    fence: Option<(char, usize)>,
}

impl Lines {
    /// Where the current line begins.
    pub(super) fn start(&self) -> Position {
        self.start
    }

    /// Whether it is settled what the current line is, so that only its end matters.
    pub(super) fn is_inside(&self) -> bool {
        self.gap.is_none() && matches!(self.lead, Lead::Markup | Lead::Prose)
    }

    /// Whether the current line is code or a fence.
    pub(super) fn is_code(&self) -> bool {
        self.fence.is_some() || matches!(self.lead, Lead::Fence { count: 3.., .. })
    }

    /// Reads a character between the two places.
    pub(super) fn step(&mut self, c: char, at: Position, after: Position) -> Turn {
        if is_newline(c) {
            self.end_line(c, at, after);
            return Turn::Inside;
        }
        if c.is_whitespace() {
            if let Lead::Fence { is_over, .. } = &mut self.lead {
                *is_over = true;
            }
            return Turn::Inside;
        }
        self.lead = self.lead(c);
        match self.gap.take() {
            None => Turn::Inside,
            Some(gap) if gap.newlines > 1 => Turn::Paragraph(gap.end),
            Some(gap) => Turn::Line { position: gap.end, is_long: gap.is_long },
        }
    }

    fn end_line(&mut self, c: char, at: Position, after: Position) {
        let begun = self.gap.take();
        if let Some(gap) = begun
            && gap.ends_with_return
            && c == '\n'
            && gap.end == at
        {
            self.gap = Some(Gap { end: after, ends_with_return: false, ..gap });
            self.start = after;
            return;
        }
        let is_prose = self.lead == Lead::Prose && !self.is_code();
        let is_long = is_prose && at.chars - self.start.chars >= WRAPPED_LINE_CHARS;
        let ended = if c == '\u{2029}' { 2 } else { 1 };
        self.gap = Some(Gap {
            newlines: begun.map_or(0, |gap| gap.newlines).saturating_add(ended),
            end: after,
            ends_with_return: c == '\r',
            is_long: begun.map_or(is_long, |gap| gap.is_long),
        });
        self.turn_fence();
        self.lead = Lead::Blank;
        self.start = after;
    }

    /// Opens or closes the code, if the line that ends is a fence.
    fn turn_fence(&mut self) {
        if let Lead::Fence { mark, count: count @ 3.., has_more, .. } = self.lead {
            match self.fence {
                None => self.fence = Some((mark, count)),
                Some((opened, length)) if opened == mark && count >= length && !has_more => {
                    self.fence = None;
                }
                Some(_) => {}
            }
        }
    }

    fn lead(&self, c: char) -> Lead {
        match self.lead {
            Lead::Blank => match c {
                '`' | '~' => Lead::Fence { mark: c, count: 1, is_over: false, has_more: false },
                '#' | '|' => Lead::Markup,
                _ => Lead::Prose,
            },
            Lead::Fence { mark, count, is_over: false, has_more: false } if c == mark => {
                Lead::Fence {
                    mark,
                    count: count.saturating_add(1),
                    is_over: false,
                    has_more: false,
                }
            }
            // Three backticks with others after them on the line are code inside prose.
            Lead::Fence { mark: '`', .. } if c == '`' => Lead::Prose,
            Lead::Fence { mark, count: count @ 3.., is_over, .. } => {
                Lead::Fence { mark, count, is_over, has_more: true }
            }
            Lead::Fence { .. } | Lead::Prose => Lead::Prose,
            Lead::Markup => Lead::Markup,
        }
    }
}

/// The characters that end a line; `\r\n` are one end.
fn is_newline(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
