//! What is said to BRLTTY, and what its answers mean. Touches nothing itself, except that words are contracted.
//!
//! The display is taken only while there is something to show, and given back after, so that the person's own
//! screen is under the fingers again. Each window is written and then confirmed: a key that was pressed before the
//! confirmation was pressed before the person could feel what it would mean, and counts for nothing.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::Settings;
use super::codec::{self, Packet, Packets};
use super::contract::Contraction;
use super::pages::{flatten, shortened};
use super::reader::{Pace, Reader};
use crate::device::client::{Conversation, Out};
use crate::device::plain::one_line;
use crate::english::devices;
use crate::utterance::{Kind, Order, Report};

/// How often it is asked for the size of the display while it has none.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How long words stay on the display after their end when nothing follows.
const LINGER: Duration = Duration::from_secs(1);

/// What the server was asked, and has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Version,
    Authorization,
    ToTakeKey,
    Cells,
    ToEnter,
    ToIgnoreKeys,
    ToTakeOurKeys,
    /// For the cells again, after a window of that number was written.
    Written(u64),
    ToLeave,
}

/// How it stands with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is known yet: orders wait.
    Starting,
    /// It does not work: orders are cut at once, so that nothing waits.
    Lost,
    Open,
}

/// The conversation with BRLTTY.
pub(super) struct Talk {
    settings: Settings,
    state: State,
    packets: Packets,
    asked: Option<(Asked, Instant)>,
    /// When the size is asked for again, and until when that goes on.
    again: Option<Instant>,
    until: Option<Instant>,
    is_in_terminal: bool,
    leaves: Option<Instant>,
    reader: Reader,
    contraction: Contraction,
    /// Reads the key file.
    key: Box<dyn Fn() -> Option<Vec<u8>> + Send>,
}

impl Talk {
    pub(super) fn new(settings: Settings, key: Box<dyn Fn() -> Option<Vec<u8>> + Send>) -> Self {
        let pace =
            Pace { cells_per_second: settings.cells_per_second, least_look: settings.least_look };
        let contraction = Contraction::new(settings.translator.clone(), settings.tables.clone());
        Talk {
            settings,
            state: State::Starting,
            packets: Packets::default(),
            asked: None,
            again: None,
            until: None,
            is_in_terminal: false,
            leaves: None,
            reader: Reader::new(pace),
            contraction,
            key,
        }
    }

    fn ask(&mut self, now: Instant, asked: Asked, bytes: &[u8], out: &mut Out) {
        out.bytes.extend_from_slice(bytes);
        self.asked = Some((asked, now + self.settings.patience));
    }

    fn take(&mut self, now: Instant, packet: &Packet, out: &mut Out) -> Result<(), String> {
        let asked = self.asked.map(|(asked, _)| asked);
        match (packet, asked) {
            (Packet::Key(key), _) => self.reader.key(now, *key, &mut out.reports),
            (Packet::Other(_), _) => {}
            (Packet::Version(version), Some(Asked::Version)) => {
                if !codec::VERSIONS.contains(version) {
                    return Err(devices::braille::unknown_version(*version));
                }
                self.ask(now, Asked::Authorization, &codec::version(*version), out);
            }
            (Packet::Authorization(ways), Some(Asked::Authorization)) => {
                self.authorize(now, ways, out)?;
            }
            (Packet::Done, Some(Asked::ToTakeKey)) => {
                self.ask(now, Asked::Cells, &codec::ask_cells(), out);
            }
            (Packet::Cells(cells), Some(Asked::Cells)) => self.greeted(now, *cells, out),
            (Packet::Done, Some(Asked::ToEnter)) => {
                self.is_in_terminal = true;
                self.ask(now, Asked::ToIgnoreKeys, &codec::ignore_all_keys(), out);
            }
            (Packet::Done, Some(Asked::ToIgnoreKeys)) => {
                self.ask(now, Asked::ToTakeOurKeys, &codec::accept_our_keys(), out);
            }
            (Packet::Cells(0), Some(Asked::Written(_))) => {
                return Err(devices::braille::DISPLAY_IS_GONE.to_owned());
            }
            (Packet::Cells(cells), Some(Asked::Written(version))) => {
                self.asked = None;
                self.reader.resize(*cells);
                self.reader.is_shown(now, version, &mut out.reports);
            }
            (Packet::Done, Some(Asked::ToTakeOurKeys | Asked::ToLeave)) => self.asked = None,
            (Packet::Refused(_) | Packet::Exception(_), _) => return Err(refused(asked)),
            _ => return Err(devices::braille::UNEXPECTED_ANSWER.to_owned()),
        }
        Ok(())
    }

    fn authorize(&mut self, now: Instant, ways: &[u32], out: &mut Out) -> Result<(), String> {
        if ways.contains(&codec::NONE) {
            self.ask(now, Asked::Cells, &codec::ask_cells(), out);
            return Ok(());
        }
        let key = ways.contains(&codec::KEY).then(|| (self.key)()).flatten();
        let key = key.ok_or_else(|| refused(Some(Asked::ToTakeKey)))?;
        self.ask(now, Asked::ToTakeKey, &codec::authorization(&key), out);
        Ok(())
    }

    /// The last answer before the server works: there is a display.
    fn greeted(&mut self, now: Instant, cells: usize, out: &mut Out) {
        self.asked = None;
        if cells == 0 {
            self.again = Some(now + ASK_AGAIN);
            return;
        }
        self.until = None;
        self.state = State::Open;
        self.reader.resize(cells);
        out.is_working = true;
    }

    /// Brings the display to where it should be, one step, unless an answer is still to come.
    fn go_on(&mut self, now: Instant, out: &mut Out) {
        if self.state != State::Open || self.asked.is_some() {
            return;
        }
        if self.reader.wanted().is_some() {
            self.leaves = None;
            if !self.is_in_terminal {
                let bytes = codec::enter(&self.settings.terminal);
                self.ask(now, Asked::ToEnter, &bytes, out);
            } else if let Some((text, version)) = self.reader.to_write() {
                let mut bytes = codec::write(text, self.reader.cells());
                bytes.extend(codec::ask_cells());
                self.ask(now, Asked::Written(version), &bytes, out);
            }
        } else if self.is_in_terminal {
            let leaves = *self.leaves.get_or_insert_with(|| {
                // An answered question must not look as if it could still be answered.
                if self.reader.last_was_question() { now } else { now + LINGER }
            });
            if leaves <= now {
                self.leaves = None;
                self.is_in_terminal = false;
                self.ask(now, Asked::ToLeave, &codec::leave(), out);
            }
        }
    }

    /// The words as they are shown, and the choices. A question is never contracted, so that it is exact under the
    /// fingers, nor are choices, because a contraction of a cell or two is no label for an answer.
    fn prepare(&mut self, order: &mut Order, out: &mut Out) -> String {
        let Order::Say(utterance) = order else { return String::new() };
        let words = flatten(utterance);
        if utterance.kind == Kind::Question {
            return words;
        }
        if let Cow::Owned(shortened) = shortened(&words) {
            let (words, notice) = self.contraction.contract(shortened, utterance.language.as_ref());
            out.reports.extend(notice.map(Report::Notice));
            return words;
        }
        // Each part by the table of its own language.
        let mut shown: Vec<String> = Vec::new();
        for part in utterance.language_runs() {
            let part_words = one_line(&part.words);
            let (cells, notice) = self.contraction.contract(part_words, part.language.as_ref());
            out.reports.extend(notice.map(Report::Notice));
            shown.push(cells);
        }
        shown.join(" ")
    }
}

fn refused(asked: Option<Asked>) -> String {
    match asked {
        Some(Asked::Authorization | Asked::ToTakeKey) => devices::braille::NOT_LET_IN,
        Some(Asked::ToEnter) => devices::braille::NOT_IN_THIS_TERMINAL,
        _ => devices::braille::REFUSED,
    }
    .to_owned()
}

impl Conversation for Talk {
    fn connected(&mut self, now: Instant, _: &mut Out) {
        self.packets = Packets::default();
        self.asked = Some((Asked::Version, now + self.settings.patience));
        self.until = Some(now + self.settings.patience);
    }

    fn heard(&mut self, now: Instant, bytes: &[u8], out: &mut Out) -> Result<(), String> {
        self.packets.push(bytes);
        while let Some(packet) =
            self.packets.next_packet().map_err(|_| devices::braille::DAMAGED_ANSWER.to_owned())?
        {
            self.take(now, &packet, out)?;
            self.go_on(now, out);
        }
        Ok(())
    }

    fn told(&mut self, now: Instant, mut order: Order, out: &mut Out) {
        if self.state == State::Lost && matches!(order, Order::Pace(_)) {
            // Who reads nothing cannot feel how fast it is.
            return;
        }
        let words = self.prepare(&mut order, out);
        self.reader.told(now, order, words, &mut out.reports);
        if self.state == State::Lost {
            self.reader.lost(&mut out.reports);
        }
        self.go_on(now, out);
    }

    fn due(&self) -> Option<Instant> {
        let asked = self.asked.map(|(_, until)| until);
        let reader = if self.state == State::Open { self.reader.due() } else { None };
        [asked, self.again, self.leaves, reader].into_iter().flatten().min()
    }

    fn passed(&mut self, now: Instant, out: &mut Out) -> Result<(), String> {
        if self.asked.is_some_and(|(_, until)| until <= now) {
            return Err(devices::braille::NO_ANSWER.to_owned());
        }
        if self.again.is_some_and(|again| again <= now) {
            if self.until.is_some_and(|until| until <= now) {
                return Err(devices::braille::NO_DISPLAY.to_owned());
            }
            self.again = None;
            self.ask(now, Asked::Cells, &codec::ask_cells(), out);
        }
        self.reader.passed(now, &mut out.reports);
        self.go_on(now, out);
        Ok(())
    }

    fn lost(&mut self, out: &mut Out) {
        self.state = State::Lost;
        (self.asked, self.again, self.until, self.leaves) = (None, None, None, None);
        self.is_in_terminal = false;
        self.reader.lost(&mut out.reports);
    }

    fn ends(&mut self, out: &mut Out) {
        if self.is_in_terminal {
            out.bytes.extend(codec::leave());
        }
    }
}

#[cfg(test)]
mod tests;
