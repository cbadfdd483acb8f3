//! What the person types, at work.

use aaep::{Payload, printable};
use aaep_announce::{AskNumber, HubNumber, Input, Wish};

use super::WORDS;
use super::open::NotBare;
use super::room::Room;
use super::typed::{self, Typed};
use crate::answer::meaning::{self, Meaning, Unclear};
use crate::attention::asked;
use crate::attention::words::duration;

impl Room {
    /// The person typed something. Says whether they want to leave.
    pub(super) fn typed(&mut self, line: &str) -> bool {
        match typed::read(line) {
            Typed::Quit => return true,
            Typed::Nothing => {}
            Typed::Wish(wish) => self.wish(wish),
            Typed::Help => self.reply(WORDS),
            Typed::Left => self.recall(),
            Typed::Away => self.away(),
            Typed::List => self.list(),
            Typed::To(number, words) => self.words(number, words),
            Typed::Words(words) => {
                let is_refusal = meaning::REFUSAL.contains(&words.to_lowercase().as_str());
                if let Some(number) = self.meant(is_refusal) {
                    self.words(number, words);
                }
            }
            Typed::Choice(choice) => self.choice(choice),
        }
        false
    }

    /// The question that is meant by words without a number. If that is not sure, the person is told so.
    fn meant(&mut self, is_refusal: bool) -> Option<AskNumber> {
        let what = match self.open.bare(self.now(), is_refusal) {
            Ok(number) => return Some(number),
            Err(NotBare::Nothing) => {
                "Nothing waits for you. For what can be typed: help".to_owned()
            }
            Err(NotBare::Several) => {
                "Several questions wait. Say the number of one, then the answer. To hear them: list"
                    .to_owned()
            }
            Err(NotBare::Unsure(number)) => format!(
                "Question {number} has only just been asked. Nothing was answered. To answer it, say its number \
                 first, then the answer."
            ),
        };
        self.reply(&what);
        None
    }

    /// The person chose an answer by its number, as they stand under the question. The first one never consents.
    fn choice(&mut self, choice: usize) {
        let Some(number) = self.meant(choice == 1) else { return };
        let Some(waiting) = self.open.get(number) else { return };
        match (&waiting.ask.event().payload, choice) {
            (Payload::AwaitingConfirmation(_), 1) => self.answer(number, Meaning::Reject),
            (Payload::AwaitingConfirmation(_), 2) => self.answer(number, Meaning::Accept),
            (Payload::AwaitingConfirmation(_), _) => {
                self.reply("The answers are 1, no, and 2, yes. Nothing was answered.");
            }
            _ => self.words(number, &choice.to_string()),
        }
    }

    fn wish(&mut self, wish: Wish) {
        if matches!(wish, Wish::Pace(_)) && !self.has_pace() {
            return self.reply("Only speech and braille have a pace, and neither is on.");
        }
        self.tell_all(&Input::Wish(wish));
    }

    /// Says something to the person that they asked for just now.
    pub(super) fn reply(&mut self, text: &str) {
        for line in text.lines() {
            self.tell_all(&Input::Notice(line));
        }
    }

    /// Which questions wait.
    fn list(&mut self) {
        let lines: Vec<(HubNumber, String)> = self
            .open
            .all()
            .map(|(number, it)| {
                let event = it.ask.event();
                let line = format!(
                    "Question {number}, from {}: {} Time left: {}.",
                    printable(&event.envelope.producer.agent_id),
                    printable(asked::what(event)),
                    duration(it.ask.remaining())
                );
                (it.hub, line)
            })
            .collect();
        if lines.is_empty() {
            self.reply("Nothing waits for you.");
        }
        for (hub, line) in lines {
            self.tell_from(hub, &Input::HubNotice(&line));
        }
    }

    /// Words to a question.
    fn words(&mut self, number: AskNumber, words: &str) {
        let Some(waiting) = self.open.get(number) else {
            self.reply(&format!("No question with the number {number} waits. To hear them: list"));
            return;
        };
        match meaning::understand(&waiting.ask.event().payload, words, false) {
            Ok(meaning) => self.answer(number, meaning),
            Err(Unclear(why)) => self.reply(&format!("{why} Nothing was answered.")),
        }
    }
}
