//! What the person types, at work.

use std::time::Duration;

use aaep::{Payload, printable};
use aaep_announce::words::exact;
use aaep_announce::{AskNumber, HubNumber, Input, Wish};

use super::WORDS;
use super::meant::NotBare;
use super::room::Room;
use super::typed::{self, Typed};
use crate::answer::meaning::{self, Unclear};
use crate::attention::asked;
use crate::attention::words::duration;
use crate::keyboard::TypedLine;

/// What is said to a line that was begun for something else.
const ANOTHER: &str = "That was for another question. Nothing was answered.";

impl Room {
    /// The person typed something. Says whether they want to leave.
    pub(super) fn typed(&mut self, line: &TypedLine) -> bool {
        let begun = self.moment(line.begun);
        match typed::read(&line.text) {
            Typed::Quit => return true,
            Typed::Nothing => {}
            Typed::Wish(wish) => self.wish(wish),
            Typed::Help => self.reply(WORDS),
            Typed::Left => self.recall(),
            Typed::Away => self.away(),
            Typed::List => self.list(),
            Typed::To(number, words) => self.words(number, words, begun),
            Typed::Words(words) => {
                let is_refusal = meaning::REFUSAL.contains(&words.to_lowercase().as_str());
                if let Some(number) = self.meant(words, begun, is_refusal) {
                    self.words(number, words, begun);
                }
            }
            Typed::Choice(choice) => self.choice(choice, begun),
        }
        false
    }

    /// The question that is meant by words without a number. If that is not sure, the person is told so.
    fn meant(&mut self, words: &str, begun: Duration, is_refusal: bool) -> Option<AskNumber> {
        let what = match self.open.bare(begun, is_refusal) {
            Ok(number) => return Some(number),
            Err(NotBare::Nothing) => {
                "Nothing waits for you. For what can be typed: help".to_owned()
            }
            Err(NotBare::Several) => {
                "Several questions wait. Say the number of one, then the answer. To hear them: list"
                    .to_owned()
            }
            Err(NotBare::Another) => format!("{} {ANOTHER}", you_typed(words)),
            Err(NotBare::Over) => {
                format!("{} That question is over. Nothing was answered.", you_typed(words))
            }
            Err(NotBare::Unsure(number)) => format!(
                "Question {number} has only just been asked. Nothing was answered. To answer it, say its number \
                 first, then the answer."
            ),
        };
        self.feedback(&what);
        None
    }

    /// The person chose an answer by its number, as they stand under the question. A digit is typed too easily to
    /// decide on anything that an agent wants to do.
    fn choice(&mut self, choice: usize, begun: Duration) {
        let words = choice.to_string();
        let Some(number) = self.meant(&words, begun, false) else { return };
        let Some(waiting) = self.open.get(number) else { return };
        if matches!(waiting.ask.event().payload, Payload::AwaitingConfirmation(_)) {
            self.feedback("A digit alone does not answer this question. Type yes or no. Nothing was answered.");
        } else {
            self.words(number, &words, begun);
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
            self.tell_all(&Input::Requested(line));
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
                    printable(&self.agent_label(it.hub, event)),
                    exact(asked::what(event)),
                    duration(it.remaining())
                );
                (it.hub, line)
            })
            .collect();
        if lines.is_empty() {
            self.reply("Nothing waits for you.");
        }
        for (hub, line) in lines {
            let line = self.hubs.about(hub, &line);
            self.reply(&line);
        }
    }

    /// Words to a question, begun at this moment.
    fn words(&mut self, number: AskNumber, words: &str, begun: Duration) {
        let has_paced = self.has_paced();
        let Some(waiting) = self.open.get(number) else {
            let what = format!("No question with the number {number} waits. To hear them: list");
            return self.feedback(&what);
        };
        if !waiting.told.has_begun_at(begun) {
            return self.feedback(&format!("{} {ANOTHER}", you_typed(words)));
        }
        match meaning::understand(&waiting.ask.event().payload, words, false) {
            Ok(meaning) if meaning.lets_happen() && !waiting.told.is_whole_at(begun, has_paced) => {
                let what = "You began to type before the question was told to its end.";
                let text = format!("{} {what} Nothing was answered.", you_typed(words));
                self.tell_all(&Input::TooSoon { number, text: &text });
            }
            Ok(meaning) => self.answer(number, meaning),
            Err(Unclear(why)) => self.feedback(&format!("{why} Nothing was answered.")),
        }
    }

    /// Says what came of what was typed, at once or not at all.
    fn feedback(&mut self, text: &str) {
        self.tell_all(&Input::Feedback(text));
    }
}

fn you_typed(words: &str) -> String {
    format!("You typed \"{}\".", printable(words.trim()))
}
