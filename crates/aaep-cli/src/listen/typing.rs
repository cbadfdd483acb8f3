//! Carries out what the person types.

use std::time::Duration;

use aaep::event::human::ResponseKind;
use aaep::{Payload, printable};
use aaep_announce::words::exact;
use aaep_announce::{AnnouncerInput, AskNumber, HubNumber, ListeningRequest, choice_letters};

use super::meant::{AskDoubt, UnnumberedRefusal};
use super::reports::DeviceReports;
use super::room::ListeningRoom;
use super::spoken_help;
use super::typed::{self, TypedMeaning};
use crate::answer::meaning::{self, UnclearAnswer};
use crate::attention::asked;
use crate::english::typing::{self, FOR_ANOTHER, NOTHING_ANSWERED};
use crate::keyboard::TypedLine;

impl ListeningRoom {
    /// Handles a typed line. Returns whether the person wants to leave.
    pub(super) async fn typed(&mut self, line: &TypedLine, reports: &mut DeviceReports) -> bool {
        // The line may answer what is on the screen, so take in first what was told before it (ruling 33).
        for told in reports.sent_so_far().await {
            self.report(told);
        }
        let begun = self.moment(line.begun);
        match typed::read(&line.text) {
            TypedMeaning::Quit => return true,
            TypedMeaning::Nothing => {}
            TypedMeaning::Request(wish) => self.wish(wish),
            TypedMeaning::Stop => {
                self.wish(ListeningRequest::Hush);
                self.reply(typing::STOPPED);
            }
            TypedMeaning::Tell(words) => self.tell_agent(words),
            TypedMeaning::Cancel(name) => self.cancel_agent(name),
            TypedMeaning::Help => self.reply(&spoken_help().join("\n")),
            TypedMeaning::Left => self.recall(),
            TypedMeaning::Away => self.away(),
            TypedMeaning::List => self.list(),
            TypedMeaning::To(number, words) => self.words(number, words, &line.text, begun),
            TypedMeaning::Words(words) => {
                let is_refusal = meaning::REFUSAL.contains(&words.to_lowercase().as_str());
                if let Some(number) = self.meant(words, begun, is_refusal) {
                    self.words(number, words, &line.text, begun);
                }
            }
            TypedMeaning::Number(number) => self.number_alone(number, begun),
        }
        false
    }

    /// The ask that words without a number refer to. If that is unclear, tells the person so.
    fn meant(&mut self, words: &str, begun: Duration, is_refusal: bool) -> Option<AskNumber> {
        match self.open.find_unnumbered(begun, is_refusal, self.has_paced_at(begun)) {
            Ok(number) => Some(number),
            Err(why) => {
                self.feedback(&not_meant(words, why));
                None
            }
        }
    }

    /// Handles a number alone. Asks have numbers and choices do not, so the ask is told again. The number is an
    /// answer only if a number or free text is asked for; it never consents (ruling 33).
    fn number_alone(&mut self, typed: AskNumber, begun: Duration) {
        let words = typed.to_string();
        let answers = |payload: &Payload| takes_number(payload, &words);
        let known = self.open.get(typed).filter(|it| it.told.has_begun_at(begun));
        if let Some(waiting) = known {
            let hint = if answers(&waiting.ask.event().payload) {
                format!("{} ", typing::to_answer_with(typed))
            } else {
                String::new()
            };
            let again = typing::question_again(typed);
            let text = format!("{} {NOTHING_ANSWERED} {hint}{again}", you_typed(&words));
            self.feedback(&text);
            return self.tell_all(&AnnouncerInput::Request(ListeningRequest::Question(typed)));
        }
        let Some(number) = self.meant(&words, begun, false) else { return };
        let Some(waiting) = self.open.get(number) else { return };
        let payload = &waiting.ask.event().payload;
        if answers(payload) {
            return self.words(number, &words, &words, begun);
        }
        let how = instead_of_digits(payload, typed);
        self.feedback(&format!("{} {how} {NOTHING_ANSWERED}", you_typed(&words)));
    }

    fn wish(&mut self, wish: ListeningRequest) {
        if matches!(wish, ListeningRequest::Pace(_)) && !self.has_pace() {
            return self.reply(typing::NO_PACE);
        }
        self.tell_all(&AnnouncerInput::Request(wish));
    }

    /// Tells the person something that they have just asked for.
    pub(super) fn reply(&mut self, text: &str) {
        for line in text.lines() {
            self.tell_all(&AnnouncerInput::Requested(line));
        }
    }

    /// Lists the open asks.
    fn list(&mut self) {
        let lines: Vec<(HubNumber, String)> = self
            .open
            .all()
            .map(|(number, it)| {
                let event = it.ask.event();
                let line = typing::waits(
                    number,
                    &printable(&self.agent_label(it.hub, event)),
                    &exact(asked::what(event)),
                    it.remaining(),
                );
                (it.hub, line)
            })
            .collect();
        if lines.is_empty() {
            self.reply(typing::NOTHING_WAITS);
        }
        for (hub, line) in lines {
            let line = self.hubs.about(hub, &line);
            self.reply(&line);
        }
    }

    /// Words for an ask, in a line that was begun at this moment.
    fn words(&mut self, number: AskNumber, words: &str, line: &str, begun: Duration) {
        let has_paced = self.has_paced_at(begun);
        let Some(waiting) = self.open.get(number) else {
            let what = if self.open.was_asked(number) {
                FOR_ANOTHER.to_owned()
            } else {
                typing::no_such_question(number)
            };
            return self.feedback(&format!("{} {what}", you_typed(line)));
        };
        if !waiting.told.has_begun_at(begun) {
            return self.feedback(&format!("{} {FOR_ANOTHER}", you_typed(line)));
        }
        match meaning::understand(&waiting.ask.event().payload, words, false) {
            Ok(meaning) if meaning.lets_happen() && !waiting.told.is_whole_at(begun, has_paced) => {
                let what = typing::BEGUN_TOO_SOON;
                let text = format!("{} {what} {NOTHING_ANSWERED}", you_typed(line));
                self.tell_all(&AnnouncerInput::TooSoon { number, text: &text });
            }
            Ok(meaning)
                if meaning.lets_happen()
                    && waiting.needs_person()
                    && waiting.told.is_spoken_over_at(begun) =>
            {
                let (what, again) = (typing::AGENT_SPOKE, typing::question_again(number));
                self.feedback(&format!("{} {what} {NOTHING_ANSWERED} {again}", you_typed(line)));
                self.tell_all(&AnnouncerInput::Request(ListeningRequest::Question(number)));
            }
            Ok(meaning) => self.answer(number, meaning),
            Err(UnclearAnswer(why)) => self.feedback(&format!("{why} {NOTHING_ANSWERED}")),
        }
    }

    /// Tells the result of a typed line, at once or not at all.
    fn feedback(&mut self, text: &str) {
        self.tell_all(&AnnouncerInput::Feedback(text));
    }
}

/// The feedback for words without a number that are not taken as an answer: the words, and that they answered
/// nothing.
pub(crate) fn not_meant(words: &str, why: UnnumberedRefusal) -> String {
    let what = match why {
        UnnumberedRefusal::Another => FOR_ANOTHER.to_owned(),
        UnnumberedRefusal::Over => typing::question_over(),
        UnnumberedRefusal::Nothing => typing::nothing_waits(),
        UnnumberedRefusal::Several => typing::several_wait(),
        UnnumberedRefusal::Unsure(number, doubt) => {
            typing::in_doubt(&unsure(number, doubt), number)
        }
    };
    format!("{} {what}", you_typed(words))
}

/// Why the person may not have meant an ask.
fn unsure(number: AskNumber, doubt: AskDoubt) -> String {
    match doubt {
        AskDoubt::TooSoon { after, takes } => typing::typed_too_soon(number, after, takes),
        AskDoubt::AfterAnother => typing::after_another(number),
    }
}

/// Whether a number alone answers an ask: a number is asked for, or it is the label of a choice.
fn takes_number(payload: &Payload, number: &str) -> bool {
    let Payload::AwaitingClarification(asked) = payload else { return false };
    let kinds = asked.accepted_response_kinds.as_deref().unwrap_or(&[ResponseKind::Freetext]);
    let mut choices = asked.choices.iter().flatten();
    kinds.contains(&ResponseKind::Numeric)
        || kinds.contains(&ResponseKind::Freetext) && asked.choices.is_none()
        || choices.any(|it| it.label.trim() == number)
}

/// What to type when a digit answers nothing.
fn instead_of_digits(payload: &Payload, typed: AskNumber) -> String {
    let Payload::AwaitingClarification(asked) = payload else {
        return typing::TYPE_YES_OR_NO.to_owned();
    };
    let choices = asked.choices.as_deref().unwrap_or_default();
    let letters = choice_letters(choices.iter().map(|it| it.label.as_str())).unwrap_or_default();
    let place = usize::try_from(typed).ok().and_then(|it| it.checked_sub(1));
    let meant = place.and_then(|at| letters.get(at).zip(choices.get(at)));
    match (meant, letters.as_slice()) {
        (Some((letter, choice)), _) => typing::choice_has_letter(&exact(&choice.label), letter),
        (None, [first, .., last]) => typing::choices_have_letters(first, last),
        _ => typing::TYPE_THE_WORDS.to_owned(),
    }
}

pub(crate) fn you_typed(words: &str) -> String {
    typing::you_typed(&printable(words.trim()))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc::{Receiver, TryRecvError};
    use std::task::{Context, Waker};
    use std::thread;
    use std::time::Instant;

    use aaep_announce::device::{Device, Reporter, lines};
    use aaep_announce::{Announcer, DeviceReport, Order, Preferences};

    use super::*;
    use crate::attention::file::NumbersFile;
    use crate::listen::devices::{DeviceChannel, DeviceSet};
    use crate::listen::hearing::ListenedHubs;
    use crate::settings::UserSettings;

    /// A room without hubs, with lines whose orders are captured.
    fn room() -> (ListeningRoom, Receiver<Order>) {
        let (device, orders) = Device::new(lines::NAME);
        let announcer = Announcer::new(Preferences::default()).without_pace();
        let channels = vec![DeviceChannel { device, announcer, is_stuck: false }];
        let devices = DeviceSet { channels, sounds: None, are_lines_on_screen: false };
        // Nothing is ever numbered here.
        let (numbers, hubs) =
            (NumbersFile::at("questions.json".into()), ListenedHubs::new(Vec::new()));
        (ListeningRoom::new(devices, &UserSettings::default(), numbers, hubs, Vec::new()), orders)
    }

    #[tokio::test]
    async fn what_was_told_before_a_line_is_known_before_the_line_is_taken() {
        let (mut room, orders) = room();
        let (mut reports, pass_on) = DeviceReports::held();
        let reporter = Reporter::new(lines::NAME, reports.sender().clone());
        room.reply("Told.");
        let Ok(Order::Say(said)) = orders.try_recv() else { panic!("nothing is told") };
        assert!(
            reporter.report(DeviceReport::Began(said.id))
                && reporter.report(DeviceReport::Ended(said.id))
        );
        // This would stop an utterance that is still being told.
        let line = TypedLine { text: "hush".to_owned(), begun: Instant::now() };
        {
            let mut typed = pin!(room.typed(&line, &mut reports));
            let mut context = Context::from_waker(Waker::noop());
            assert!(typed.as_mut().poll(&mut context).is_pending(), "the report is on its way");
            thread::spawn(pass_on);
            assert!(!typed.await, "nobody wants to leave");
        }
        assert_eq!(orders.try_recv(), Err(TryRecvError::Empty), "it had ended");
    }

    #[tokio::test]
    async fn a_line_is_taken_at_once_if_nothing_can_be_reported_any_more() {
        let (mut room, orders) = room();
        let (mut reports, pass_on) = DeviceReports::held();
        drop(pass_on);
        room.reply("Told.");
        assert!(matches!(orders.try_recv(), Ok(Order::Say(_))));
        for (text, is_leaving) in [("hush", false), ("quit", true)] {
            let line = TypedLine { text: text.to_owned(), begun: Instant::now() };
            assert_eq!(room.typed(&line, &mut reports).await, is_leaving);
        }
        assert_eq!(orders.try_recv(), Ok(Order::Stop));
    }

    #[test]
    fn whatever_is_not_an_answer_is_named_and_said_to_answer_nothing() {
        for why in [
            UnnumberedRefusal::Another,
            UnnumberedRefusal::Over,
            UnnumberedRefusal::Nothing,
            UnnumberedRefusal::Several,
            UnnumberedRefusal::Unsure(2, AskDoubt::AfterAnother),
        ] {
            let told = not_meant(" yes\u{1b}", why);
            assert!(told.starts_with("You typed \"yes"), "{told}");
            assert!(told.contains(NOTHING_ANSWERED) && !told.contains('\u{1b}'), "{told}");
        }
    }

    #[test]
    fn doubts_say_what_is_true_and_what_to_type() {
        let (after, takes) = (Duration::from_secs(20), Duration::from_secs(30));
        assert_eq!(
            not_meant("yes", UnnumberedRefusal::Unsure(13, AskDoubt::TooSoon { after, takes })),
            "You typed \"yes\". You began to type 20 seconds after question 13 came, and it takes at least 30 \
             seconds. Nothing was answered. If you mean it, type 13 first."
        );
        let told = not_meant("yes", UnnumberedRefusal::Unsure(13, AskDoubt::AfterAnother));
        assert!(told.contains("not sure that you mean question 13"), "{told}");
    }
}
