//! The conversation with BRLTTY. It has no side effects itself, except for running the contraction program.
//!
//! The display is taken only while there is something to show, and then given back, so that the person's own screen
//! is on it again. Each window is written and then confirmed. A key that was pressed before the confirmation does not
//! count, because the person could not feel yet what it would mean.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use super::Settings;
use super::codec::{self, BrlapiPacket, Packets};
use super::contract::BrailleContraction;
use super::pages::{flatten, shortened};
use super::reader::{BrailleReader, ReadingPace};
use crate::device::client::{ConversationOutput, ServerConversation};
use crate::device::plain::one_line;
use crate::english::devices;
use crate::utterance::{DeviceReport, Order, UtteranceKind};

/// How often the size of a missing display is requested.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How long words stay on the display after their end if nothing follows.
const LINGER: Duration = Duration::from_secs(1);

/// A request that the server has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BrailleRequest {
    Version,
    Authorization,
    ToTakeKey,
    Cells,
    ToEnter,
    ToIgnoreKeys,
    ToTakeOurKeys,
    /// The number of cells again, after the window with this version was written.
    Written(u64),
    ToLeave,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BrailleServerState {
    /// Nothing is known yet: orders wait.
    Starting,
    /// The server does not work: utterances are cut at once, so that nothing waits for them.
    Lost,
    Open,
}

/// The conversation with BRLTTY.
pub(super) struct BrailleConversation {
    settings: Settings,
    state: BrailleServerState,
    packets: Packets,
    asked: Option<(BrailleRequest, Instant)>,
    /// When to request the size again, and when to give up.
    again: Option<Instant>,
    until: Option<Instant>,
    is_in_terminal: bool,
    leaves: Option<Instant>,
    reader: BrailleReader,
    contraction: BrailleContraction,
    /// Reads the key file.
    key: Box<dyn Fn() -> Option<Vec<u8>> + Send>,
}

impl BrailleConversation {
    pub(super) fn new(settings: Settings, key: Box<dyn Fn() -> Option<Vec<u8>> + Send>) -> Self {
        let pace = ReadingPace {
            cells_per_second: settings.cells_per_second,
            least_look: settings.least_look,
        };
        let contraction =
            BrailleContraction::new(settings.translator.clone(), settings.tables.clone());
        BrailleConversation {
            settings,
            state: BrailleServerState::Starting,
            packets: Packets::default(),
            asked: None,
            again: None,
            until: None,
            is_in_terminal: false,
            leaves: None,
            reader: BrailleReader::new(pace),
            contraction,
            key,
        }
    }

    fn ask(
        &mut self,
        now: Instant,
        asked: BrailleRequest,
        bytes: &[u8],
        out: &mut ConversationOutput,
    ) {
        out.bytes.extend_from_slice(bytes);
        self.asked = Some((asked, now + self.settings.patience));
    }

    fn take(
        &mut self,
        now: Instant,
        packet: &BrlapiPacket,
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        let asked = self.asked.map(|(asked, _)| asked);
        match (packet, asked) {
            (BrlapiPacket::Key(key), _) => self.reader.key(now, *key, &mut out.reports),
            (BrlapiPacket::Other(_), _) => {}
            (BrlapiPacket::Version(version), Some(BrailleRequest::Version)) => {
                if !codec::VERSIONS.contains(version) {
                    return Err(devices::braille::unknown_version(*version));
                }
                self.ask(now, BrailleRequest::Authorization, &codec::version(*version), out);
            }
            (BrlapiPacket::Authorization(ways), Some(BrailleRequest::Authorization)) => {
                self.authorize(now, ways, out)?;
            }
            (BrlapiPacket::Done, Some(BrailleRequest::ToTakeKey)) => {
                self.ask(now, BrailleRequest::Cells, &codec::ask_cells(), out);
            }
            (BrlapiPacket::Cells(cells), Some(BrailleRequest::Cells)) => {
                self.greeted(now, *cells, out);
            }
            (BrlapiPacket::Done, Some(BrailleRequest::ToEnter)) => {
                self.is_in_terminal = true;
                self.ask(now, BrailleRequest::ToIgnoreKeys, &codec::ignore_all_keys(), out);
            }
            (BrlapiPacket::Done, Some(BrailleRequest::ToIgnoreKeys)) => {
                self.ask(now, BrailleRequest::ToTakeOurKeys, &codec::accept_our_keys(), out);
            }
            (BrlapiPacket::Cells(0), Some(BrailleRequest::Written(_))) => {
                return Err(devices::braille::DISPLAY_IS_GONE.to_owned());
            }
            (BrlapiPacket::Cells(cells), Some(BrailleRequest::Written(version))) => {
                self.asked = None;
                self.reader.resize(*cells);
                self.reader.is_shown(now, version, &mut out.reports);
            }
            (BrlapiPacket::Done, Some(BrailleRequest::ToTakeOurKeys | BrailleRequest::ToLeave)) => {
                self.asked = None;
            }
            (BrlapiPacket::Refused(_) | BrlapiPacket::Exception(_), _) => {
                return Err(refused(asked));
            }
            _ => return Err(devices::braille::UNEXPECTED_ANSWER.to_owned()),
        }
        Ok(())
    }

    fn authorize(
        &mut self,
        now: Instant,
        ways: &[u32],
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        if ways.contains(&codec::NONE) {
            self.ask(now, BrailleRequest::Cells, &codec::ask_cells(), out);
            return Ok(());
        }
        let key = ways.contains(&codec::KEY).then(|| (self.key)()).flatten();
        let key = key.ok_or_else(|| refused(Some(BrailleRequest::ToTakeKey)))?;
        self.ask(now, BrailleRequest::ToTakeKey, &codec::authorization(&key), out);
        Ok(())
    }

    /// The last answer of the greeting: there is a display, so the server works.
    fn greeted(&mut self, now: Instant, cells: usize, out: &mut ConversationOutput) {
        self.asked = None;
        if cells == 0 {
            self.again = Some(now + ASK_AGAIN);
            return;
        }
        self.until = None;
        self.state = BrailleServerState::Open;
        self.reader.resize(cells);
        out.is_working = true;
    }

    /// Brings the display one step closer to the wanted content, unless an answer is pending.
    fn go_on(&mut self, now: Instant, out: &mut ConversationOutput) {
        if self.state != BrailleServerState::Open || self.asked.is_some() {
            return;
        }
        if self.reader.wanted().is_some() {
            self.leaves = None;
            if !self.is_in_terminal {
                let bytes = codec::enter(&self.settings.terminal);
                self.ask(now, BrailleRequest::ToEnter, &bytes, out);
            } else if let Some((text, version)) = self.reader.to_write() {
                let mut bytes = codec::write(text, self.reader.cells());
                bytes.extend(codec::ask_cells());
                self.ask(now, BrailleRequest::Written(version), &bytes, out);
            }
        } else if self.is_in_terminal {
            let leaves = *self.leaves.get_or_insert_with(|| {
                // An answered question must not look as if it could still be answered.
                if self.reader.last_was_question() { now } else { now + LINGER }
            });
            if leaves <= now {
                self.leaves = None;
                self.is_in_terminal = false;
                self.ask(now, BrailleRequest::ToLeave, &codec::leave(), out);
            }
        }
    }

    /// The words to show. A question is never contracted, so that it is exact on the display, nor are choices,
    /// because a contraction of one or two cells is too short for a label.
    fn prepare(&mut self, order: &mut Order, out: &mut ConversationOutput) -> String {
        let Order::Say(utterance) = order else { return String::new() };
        let words = flatten(utterance);
        if utterance.kind == UtteranceKind::Question {
            return words;
        }
        if let Cow::Owned(shortened) = shortened(&words) {
            let (words, notice) = self.contraction.contract(shortened, utterance.language.as_ref());
            out.reports.extend(notice.map(DeviceReport::Notice));
            return words;
        }
        // Each part uses the table of its own language.
        let mut shown: Vec<String> = Vec::new();
        for part in utterance.language_runs() {
            let part_words = one_line(&part.words);
            let (cells, notice) = self.contraction.contract(part_words, part.language.as_ref());
            out.reports.extend(notice.map(DeviceReport::Notice));
            shown.push(cells);
        }
        shown.join(" ")
    }
}

fn refused(asked: Option<BrailleRequest>) -> String {
    match asked {
        Some(BrailleRequest::Authorization | BrailleRequest::ToTakeKey) => {
            devices::braille::NOT_LET_IN
        }
        Some(BrailleRequest::ToEnter) => devices::braille::NOT_IN_THIS_TERMINAL,
        _ => devices::braille::REFUSED,
    }
    .to_owned()
}

impl ServerConversation for BrailleConversation {
    fn connected(&mut self, now: Instant, _: &mut ConversationOutput) {
        self.packets = Packets::default();
        self.asked = Some((BrailleRequest::Version, now + self.settings.patience));
        self.until = Some(now + self.settings.patience);
    }

    fn take_bytes(
        &mut self,
        now: Instant,
        bytes: &[u8],
        out: &mut ConversationOutput,
    ) -> Result<(), String> {
        self.packets.push(bytes);
        while let Some(packet) =
            self.packets.next_packet().map_err(|_| devices::braille::DAMAGED_ANSWER.to_owned())?
        {
            self.take(now, &packet, out)?;
            self.go_on(now, out);
        }
        Ok(())
    }

    fn take_order(&mut self, now: Instant, mut order: Order, out: &mut ConversationOutput) {
        if self.state == BrailleServerState::Lost && matches!(order, Order::Pace(_)) {
            // Without a display, a person cannot feel a change of pace.
            return;
        }
        let words = self.prepare(&mut order, out);
        self.reader.take_order(now, order, words, &mut out.reports);
        if self.state == BrailleServerState::Lost {
            self.reader.lost(&mut out.reports);
        }
        self.go_on(now, out);
    }

    fn due(&self) -> Option<Instant> {
        let asked = self.asked.map(|(_, until)| until);
        let reader = if self.state == BrailleServerState::Open { self.reader.due() } else { None };
        [asked, self.again, self.leaves, reader].into_iter().flatten().min()
    }

    fn time_passed(&mut self, now: Instant, out: &mut ConversationOutput) -> Result<(), String> {
        if self.asked.is_some_and(|(_, until)| until <= now) {
            return Err(devices::braille::NO_ANSWER.to_owned());
        }
        if self.again.is_some_and(|again| again <= now) {
            if self.until.is_some_and(|until| until <= now) {
                return Err(devices::braille::NO_DISPLAY.to_owned());
            }
            self.again = None;
            self.ask(now, BrailleRequest::Cells, &codec::ask_cells(), out);
        }
        self.reader.time_passed(now, &mut out.reports);
        self.go_on(now, out);
        Ok(())
    }

    fn lost(&mut self, out: &mut ConversationOutput) {
        self.state = BrailleServerState::Lost;
        (self.asked, self.again, self.until, self.leaves) = (None, None, None, None);
        self.is_in_terminal = false;
        self.reader.lost(&mut out.reports);
    }

    fn finish(&mut self, out: &mut ConversationOutput) {
        if self.is_in_terminal {
            out.bytes.extend(codec::leave());
        }
    }
}

#[cfg(test)]
mod tests;
