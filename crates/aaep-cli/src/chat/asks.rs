//! The open questions of a chat, and what words mean as an answer. Pure.
//!
//! An option of a permission request is chosen by its letter or its whole name, and by nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::event::human::{AwaitingClarification, ResponseKind};
use aaep::reply::Response;
use aaep::{Event, Payload};
use aaep_announce::{AskNumber, choice_letters};
use aaep_bridge::ProxyAskNumber;
use aaep_bridge::acp::{AcpForm, AcpFormAnswer, AcpFormNumber, FormFieldKind};

use crate::answer::meaning::{AnswerMeaning, UnclearAnswer, understand};
use crate::attention::asked::word_count;
use crate::english::chatting;
use crate::listen::meant::{PastAsks, TellingProgress, UnnumberedRefusal, find_unnumbered};

/// What an open question is about.
#[derive(Debug)]
pub(super) enum AskSubject {
    /// A permission request, and the ids of the options that refuse.
    Menu { number: ProxyAskNumber, refusals: Vec<String> },
    /// The field of a form that comes now.
    Form { number: AcpFormNumber, form: AcpForm },
}

/// An open question.
#[derive(Debug)]
pub(super) struct ChatAsk {
    pub(super) event: Event,
    /// How far it was told to the person.
    pub(super) told: TellingProgress,
    pub(super) subject: AskSubject,
    /// Whether the person answered it, and the agent has not taken the answer yet.
    pub(super) is_answered: bool,
    /// Whether it can be answered nowhere else.
    pub(super) is_only_here: bool,
}

/// What words mean as an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChatAnswer {
    /// The option with this id, and whether it refuses.
    Option {
        id: String,
        refuses: bool,
    },
    Field(AcpFormAnswer),
}

/// All open questions, by number.
#[derive(Debug, Default)]
pub(super) struct ChatAsks {
    open: BTreeMap<AskNumber, ChatAsk>,
    past: PastAsks,
    last: AskNumber,
}

impl ChatAsks {
    /// Adds a question, and returns its number.
    pub(super) fn add(&mut self, event: Event, subject: AskSubject) -> AskNumber {
        self.last = self.last.wrapping_add(1).max(1);
        let told = TellingProgress::new(word_count(&event) + word_count_of_choices(&event));
        let ask = ChatAsk { event, told, subject, is_answered: false, is_only_here: false };
        self.open.insert(self.last, ask);
        self.last
    }

    pub(super) fn get(&self, number: AskNumber) -> Option<&ChatAsk> {
        self.open.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: AskNumber) -> Option<&mut ChatAsk> {
        self.open.get_mut(&number)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (AskNumber, &ChatAsk)> {
        self.open.iter().map(|(number, ask)| (*number, ask))
    }

    /// The open question, if there is exactly one.
    pub(super) fn only(&self) -> Option<(AskNumber, &ChatAsk)> {
        let mut open = self.all();
        open.next().filter(|_| open.next().is_none())
    }

    pub(super) fn was_asked(&self, number: AskNumber) -> bool {
        self.past.had(number)
    }

    pub(super) fn number_of_menu(&self, menu: ProxyAskNumber) -> Option<AskNumber> {
        let is_it =
            |it: &ChatAsk| matches!(it.subject, AskSubject::Menu { number, .. } if number == menu);
        self.open.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number)
    }

    pub(super) fn number_of_form(&self, form: AcpFormNumber) -> Option<AskNumber> {
        let is_it =
            |it: &ChatAsk| matches!(it.subject, AskSubject::Form { number, .. } if number == form);
        self.open.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number)
    }

    /// Removes a question that is over.
    pub(super) fn remove(&mut self, now: Duration, number: AskNumber) -> Option<ChatAsk> {
        let ask = self.open.remove(&number)?;
        self.past.add(number, &ask.told, now);
        Some(ask)
    }

    /// Removes a field of a form that the person has filled in. The next field is not another question.
    pub(super) fn remove_field(&mut self, number: AskNumber) -> bool {
        self.open.remove(&number).is_some()
    }

    /// Which question words without a number refer to, if they were begun at this moment.
    pub(super) fn find_unnumbered(
        &self,
        begun: Duration,
        words: &str,
    ) -> Result<AskNumber, UnnumberedRefusal> {
        let refuses =
            |it: &ChatAsk| matches!(it.answer(words), Ok(ChatAnswer::Option { refuses: true, .. }));
        let is_refusal = !self.open.is_empty() && self.open.values().all(refuses);
        let waiting = self.open.iter().map(|(number, it)| (*number, &it.told));
        find_unnumbered(waiting, &self.past, begun, is_refusal, false)
    }
}

impl ChatAsk {
    /// Whether a number alone can be an answer: one is asked for, or any text is.
    pub(super) fn takes_number(&self) -> bool {
        let AskSubject::Form { form, .. } = &self.subject else { return false };
        let field = form.field().map(|(field, ..)| &field.kind);
        matches!(field, Some(FormFieldKind::Number(_) | FormFieldKind::Text))
    }

    /// What words mean as an answer to this question.
    pub(super) fn answer(&self, words: &str) -> Result<ChatAnswer, UnclearAnswer> {
        match &self.subject {
            AskSubject::Menu { refusals, .. } => {
                let id = self.choice(words)?;
                let refuses = refusals.contains(&id);
                Ok(ChatAnswer::Option { id, refuses })
            }
            AskSubject::Form { form, .. } => {
                let kind = form.field().map(|(field, ..)| &field.kind);
                self.field_answer(kind, words).map(ChatAnswer::Field)
            }
        }
    }

    fn field_answer(
        &self,
        kind: Option<&FormFieldKind>,
        words: &str,
    ) -> Result<AcpFormAnswer, UnclearAnswer> {
        match kind {
            Some(FormFieldKind::One(_)) => self.choice(words).map(AcpFormAnswer::Text),
            Some(FormFieldKind::Several(_)) if words.eq_ignore_ascii_case("none") => {
                Ok(AcpFormAnswer::Several(Vec::new()))
            }
            Some(FormFieldKind::Several(_)) => {
                let one = |it: &str| self.choice(it.trim());
                let mut values = match one(words) {
                    Ok(value) => vec![value],
                    Err(_) => words.split(',').map(one).collect::<Result<Vec<_>, _>>()?,
                };
                values.sort();
                values.dedup();
                Ok(AcpFormAnswer::Several(values))
            }
            _ => match understand(&self.event.payload, words, true)? {
                AnswerMeaning::Respond(Response::Text(text)) => Ok(AcpFormAnswer::Text(text)),
                AnswerMeaning::Respond(Response::Number(it)) => Ok(AcpFormAnswer::Number(it)),
                AnswerMeaning::Respond(Response::YesNo(yes)) => Ok(AcpFormAnswer::YesNo(yes)),
                _ => Err(UnclearAnswer(chatting::not_an_answer(words))),
            },
        }
    }

    /// The value of the choice with this letter or name.
    fn choice(&self, words: &str) -> Result<String, UnclearAnswer> {
        let unclear = || UnclearAnswer(chatting::not_a_choice(words));
        let Payload::AwaitingClarification(asked) = &self.event.payload else {
            return Err(unclear());
        };
        let choices = asked.choices.as_deref().unwrap_or_default();
        let plain =
            |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let letters = choice_letters(choices.iter().map(|it| it.label.as_str()));
        let letters = letters.unwrap_or_default();
        let wanted = plain(words);
        let is_lettered = |at: usize| letters.get(at).is_some_and(|it| plain(it) == wanted);
        let found = choices.iter().enumerate();
        let mut found = found
            .filter(|(at, it)| is_lettered(*at) || plain(&it.label) == wanted)
            .map(|(_, it)| it);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only.value.clone()),
            _ => Err(unclear()),
        }
    }
}

fn word_count_of_choices(event: &Event) -> u64 {
    let Payload::AwaitingClarification(asked) = &event.payload else { return 0 };
    let words = |label: &str| label.split_whitespace().count() as u64;
    asked.choices.iter().flatten().map(|it| words(&it.label)).sum()
}

/// Whether a question arrived with everything that it should have.
pub(super) fn is_whole(event: &Event, choices: usize) -> bool {
    let Payload::AwaitingClarification(asked) = &event.payload else { return false };
    has_kinds(asked) && asked.choices.as_ref().map_or(0, Vec::len) == choices
}

fn has_kinds(asked: &AwaitingClarification) -> bool {
    let known = |it: &ResponseKind| {
        matches!(
            it,
            ResponseKind::Freetext
                | ResponseKind::YesNo
                | ResponseKind::MultipleChoice
                | ResponseKind::Numeric
        )
    };
    asked.accepted_response_kinds.as_ref().is_some_and(|it| it.iter().all(known))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::told::ToldEvents;
    use super::*;

    /// A permission request with these options: the id and the name of each.
    fn menu(options: &[(&str, &str)]) -> ChatAsk {
        let choices: Vec<Value> =
            options.iter().map(|(id, name)| json!({ "value": id, "label": name })).collect();
        let fields = json!({ "question": "May it?", "choices": choices,
            "accepted_response_kinds": ["multiple_choice"] });
        let event = ToldEvents::default().question("Tidy", fields).expect("an event");
        assert!(is_whole(&event, options.len()));
        let mut bridge = bridge::asked();
        let number = bridge.remove(0);
        let subject = AskSubject::Menu { number, refusals: vec!["no".to_owned()] };
        ChatAsk {
            event,
            told: TellingProgress::default(),
            subject,
            is_answered: false,
            is_only_here: false,
        }
    }

    mod bridge {
        use aaep_bridge::ProxyAskNumber;
        use aaep_bridge::acp::{AcpBridge, AcpSetup, AcpSide};
        use aaep_bridge::{AskPolicy, risk::RiskTable};
        use serde_json::json;

        /// The numbers of menus that a bridge opened.
        pub(super) fn asked() -> Vec<ProxyAskNumber> {
            let table = RiskTable::standard();
            let setup = AcpSetup { table: &table, policy: AskPolicy::Tell, now_ms: 0 };
            let mut bridge = AcpBridge::new("a", true, "r").in_chat();
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/request_permission",
                "params": { "sessionId": "s", "toolCall": { "toolCallId": "t", "rawInput": { "command": "ls" } },
                "options": [{ "optionId": "a", "name": "A" }, { "optionId": "b", "name": "B" }] } });
            let plan = bridge.hear(AcpSide::Agent, &request, &setup);
            vec![plan.menu.expect("a menu").number]
        }
    }

    fn chosen(ask: &ChatAsk, words: &str) -> Option<String> {
        match ask.answer(words) {
            Ok(ChatAnswer::Option { id, .. }) => Some(id),
            _ => None,
        }
    }

    #[test]
    fn an_option_is_chosen_by_its_letter_or_its_whole_name() {
        let ask = menu(&[("always", "Always"), ("once", "Allow"), ("no", "Reject")]);
        assert_eq!(chosen(&ask, "b").as_deref(), Some("once"));
        assert_eq!(chosen(&ask, " ALLOW ").as_deref(), Some("once"));
        assert_eq!(chosen(&ask, "always").as_deref(), Some("always"));
        assert_eq!(
            ask.answer("reject"),
            Ok(ChatAnswer::Option { id: "no".to_owned(), refuses: true })
        );
        // Neither by its place, nor by what it may mean, nor by a part of its name.
        for words in
            ["1", "2", "yes", "no", "once", "allow_once", "ok", "", "d", "allow it", "allow."]
        {
            assert_eq!(chosen(&ask, words), None, "{words}");
        }
    }

    #[test]
    fn names_that_are_alike_are_chosen_by_letter_alone() {
        let ask = menu(&[("p", "Allow"), ("q", "allow"), ("no", "Reject\u{1b}[2J")]);
        assert_eq!(chosen(&ask, "allow"), None);
        assert_eq!(chosen(&ask, "a").as_deref(), Some("p"));
        assert_eq!(chosen(&ask, "b").as_deref(), Some("q"));
    }

    #[test]
    fn a_name_that_is_the_letter_of_another_option_is_not_taken_for_either() {
        let ask = menu(&[("x", "b"), ("y", "Reject"), ("z", "Allow")]);
        if let Some(id) = chosen(&ask, "b") {
            assert_eq!(id, "x", "then choices have no letters that are names");
        }
    }
}
