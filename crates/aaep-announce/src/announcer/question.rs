//! A question in words, and the answers that it takes.
//!
//! What the agent asks is told exactly and whole. It never goes through the words that are made for ordinary text.

use std::time::Duration;

use aaep::event::human::{
    AwaitingClarification, AwaitingConfirmation, Decision, ResponseKind, Reversibility,
};
use aaep::extension::Delivery;
use aaep::reply::Response;
use aaep::{Event, Payload, ReplyToken};

use super::clock::QuestionClock;
use super::danger::rank;
use super::io::{Answer, AskNumber, Asked};
use super::phrase::{Tongue, sentences};
use super::sessions::SessionKey;
use crate::choices::choice_letters;
use crate::english::asks;
use crate::utterance::{Choice, UtteranceId};
use crate::words::{exact, own};

/// The longest action that is told again in a warning, in bytes. Of a longer one the number is told, and no part.
const MAX_REMINDER: usize = 160;
/// In a question longer than this, in bytes, the risk comes before what is long.
const LONG_QUESTION: usize = 300;
/// What is neither action nor risk is told on request if it is longer than this, in bytes.
const LONG_REST: usize = 600;
/// Where an agent puts the arguments of its tool.
const ARGUMENTS: &str = "arguments";

/// A question that waits for the person.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each changes for itself")]
pub(super) struct Question {
    pub(super) number: AskNumber,
    pub(super) session_id: SessionKey,
    /// The larger, the sooner it is told.
    pub(super) rank: (u8, u8),
    pub(super) token: ReplyToken,
    pub(super) tongue: Tongue,
    /// Under which ids it went to the device, the newest last.
    pub(super) ids: Vec<UtteranceId>,
    /// Those of them that told the whole question, and not only that its time is nearly over.
    pub(super) whole_ids: Vec<UtteranceId>,
    pub(super) told: Telling,
    pub(super) is_answered: bool,
    /// Whether nobody knows what became of it.
    pub(super) is_doubtful: bool,
    pub(super) is_warned: bool,
    /// Whether it was named together with others.
    pub(super) is_named: bool,
    pub(super) clock: QuestionClock,
    /// What is asked, and what follows from it.
    asked: String,
    /// Of a long question: the part that must be told, and the rest, which is told on request.
    brief: Option<(String, String)>,
    pub(super) is_rest_told: bool,
    /// The action or the question alone.
    pub(super) name: String,
    /// The tool and the action, of a confirmation.
    pub(super) action: Option<(Option<String>, String)>,
    /// What silence means.
    silence: String,
    /// How to answer.
    how: String,
    answers: Vec<(Choice, Answer)>,
}

/// How far a question was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Telling {
    NotYet,
    Begun,
    /// Not to its end: the person wanted to hear no more, or its time on the display is over.
    Left,
    /// To its end. Only now can it be consented to (ruling 33).
    Whole,
}

impl Question {
    pub(super) fn has_begun(&self) -> bool {
        self.told >= Telling::Begun
    }

    /// The question of an event, if it is one.
    pub(super) fn of(asked: &Asked<'_>, session_id: SessionKey, now: Duration) -> Option<Self> {
        let event = asked.event;
        let tongue = Tongue::of(event, event.summary());
        let parts = match &event.payload {
            Payload::AwaitingConfirmation(it) => confirmation(it, event),
            Payload::AwaitingClarification(it) => clarification(it),
            _ => return None,
        };
        let (answers, how) = if asked.can_answer {
            (parts.answers, parts.how)
        } else {
            (Vec::new(), own(asks::CANNOT_BE_ANSWERED))
        };
        Some(Question {
            number: asked.number,
            session_id,
            rank: rank(event),
            token: parts.token,
            tongue,
            ids: Vec::new(),
            whole_ids: Vec::new(),
            told: Telling::NotYet,
            is_answered: false,
            is_doubtful: false,
            is_warned: false,
            is_named: false,
            clock: QuestionClock::of(event, now, asked.remaining),
            name: parts.name,
            asked: parts.asked,
            brief: parts.brief,
            is_rest_told: false,
            action: parts.action,
            silence: parts.silence,
            how,
            answers,
        })
    }

    /// The question as it is told now: what is asked first, then what it means, then the time, then how to
    /// answer.
    ///
    /// Of a long question the action and the risk are told, and that there is more, unless that takes no time.
    pub(super) fn words(&self, now: Duration, takes_no_time: bool) -> String {
        let brief = self.brief.as_ref().filter(|_| !takes_no_time);
        let more = if brief.is_some() { own(asks::MORE) } else { String::new() };
        let asked = brief.map_or(&self.asked, |(brief, _)| brief);
        sentences(&[asked, &more, &self.time(now), &self.how])
    }

    /// What is told of a long question on request.
    pub(super) fn rest(&self) -> Option<&str> {
        self.brief.as_ref().map(|(_, rest)| rest.as_str())
    }

    /// The question for someone who cannot answer it and does not know until when it is asked.
    pub(super) fn without_time(&self) -> String {
        sentences(&[&self.asked, &self.silence, &self.how])
    }

    /// The question as it was asked, for someone who looks back: what became of it is told after it.
    pub(super) fn past(&self) -> String {
        sentences(&[&self.asked])
    }

    /// The question once more, before its time is over.
    pub(super) fn warning(&self, now: Duration) -> String {
        let is_long = self.name.len() > MAX_REMINDER;
        let number = if is_long { own(&asks::question(self.number)) } else { String::new() };
        let name = if is_long { "" } else { self.name.as_str() };
        let left = match self.remaining(now) {
            Some(left) => own(&asks::only_left(left)),
            None => String::new(),
        };
        sentences(&[&left, &number, name, &self.silence, &self.how])
    }

    pub(super) fn remaining(&self, now: Duration) -> Option<Duration> {
        self.clock.remaining(now)
    }

    fn time(&self, now: Duration) -> String {
        match self.remaining(now) {
            Some(left) => {
                format!("{} {}", own(&asks::you_have(left)), self.silence)
            }
            None => format!("{} {}", own(asks::TIME_STANDS_STILL), self.silence),
        }
    }

    /// What was asked, at the beginning of a sentence about it. A mark that only ends it is left out.
    pub(super) fn heading(&self) -> String {
        let ends = |it: &str| it.ends_with(|c: char| c.is_alphanumeric());
        let name = self.name.strip_suffix(['.', '?']).filter(|it| ends(it));
        format!("{}:", name.unwrap_or(&self.name))
    }

    /// What the question is called when it is not the last that was asked: what was asked, or its number if that is long.
    /// Numbers of the past mean nothing.
    pub(super) fn short_heading(&self, is_past: bool) -> String {
        if is_past || self.name.len() <= MAX_REMINDER {
            self.heading()
        } else {
            asks::about(self.number)
        }
    }

    /// The answers to choose from.
    pub(super) fn choices(&self) -> Vec<Choice> {
        self.answers.iter().map(|(choice, _)| choice.clone()).collect()
    }

    /// The answer at this place.
    pub(super) fn answer(&self, at: usize) -> Option<Answer> {
        self.answers.get(at).map(|(_, answer)| answer.clone())
    }
}

/// What is told of a question.
struct Parts {
    token: ReplyToken,
    asked: String,
    brief: Option<(String, String)>,
    name: String,
    action: Option<(Option<String>, String)>,
    silence: String,
    how: String,
    answers: Vec<(Choice, Answer)>,
}

fn confirmation(it: &AwaitingConfirmation, event: &Event) -> Parts {
    let tool = Delivery::of(event).and_then(|it| it.tool).map(|it| it.as_str().to_owned());
    let action = exact(&it.action);
    let consequence = exact(&it.consequence);
    let is_final =
        it.irreversible == Some(true) || it.reversibility == Some(Reversibility::Irreversible);
    let undo = match is_final {
        // The agent may have said it in the same words.
        true if consequence.ends_with(asks::CANNOT_BE_UNDONE) => "",
        true => asks::CANNOT_BE_UNDONE,
        false => asks::undo(it.reversibility.as_ref(), it.irreversible),
    };
    let risk = asks::risk(it.risk_level.as_ref());
    let with = tool.as_ref().map(|it| own(&asks::tool(&exact(it)))).unwrap_or_default();
    let arguments = it.extra_context.as_ref().and_then(|it| it.get(ARGUMENTS));
    let arguments = arguments.map(|it| own(&asks::arguments(&exact(&it.to_string()))));
    let arguments = arguments.unwrap_or_default();
    let silence = asks::silence(it.default_decision);
    let answers = decisions(it.allowed_replies.as_deref());
    let how = match answers.as_slice() {
        [(choice, _)] => asks::only_answer(&choice.words),
        _ => asks::YES_OR_NO.to_owned(),
    };
    let rest = sentences(&[&consequence, &arguments]);
    // The risk comes before what is long, and so does that it cannot be undone, whatever the agent says later.
    let undo_first = own(if is_final { asks::CANNOT_BE_UNDONE } else { undo });
    let (risk, undo) = (own(risk), own(undo));
    let is_long_action = action.len() > MAX_REMINDER;
    let [first, second, third]: [&str; 3] =
        if is_long_action { [&risk, &undo_first, &action] } else { [&action, &risk, &undo_first] };
    let asked = if action.len() + rest.len() > LONG_QUESTION {
        sentences(&[first, second, third, &consequence, &with, &arguments])
    } else {
        sentences(&[&action, &consequence, &risk, &undo, &with, &arguments])
    };
    let brief = sentences(&[first, second, third, &with]);
    Parts {
        token: it.reply_token.clone(),
        asked,
        brief: (rest.len() > LONG_REST).then_some((brief, rest)),
        name: action,
        action: Some((tool, it.action.clone())),
        silence: own(silence),
        how: own(&how),
        answers,
    }
}

/// No first: what is chosen by a slip does nothing. No is offered whatever the agent allows.
fn decisions(allowed: Option<&[String]>) -> Vec<(Choice, Answer)> {
    let all = [(asks::NO, Decision::Reject), (asks::YES, Decision::Accept)];
    let is_allowed = |decision: Decision| {
        decision == Decision::Reject
            || allowed.is_none_or(|it| it.iter().any(|it| it == decision.as_str()))
    };
    let choice = |words: &str, decision| {
        let is_consent = decision == Decision::Accept;
        (Choice { words: words.to_owned(), is_consent }, Answer::Decision(decision))
    };
    let allowed = all.into_iter().filter(|(_, decision)| is_allowed(*decision));
    allowed.map(|(words, decision)| choice(words, decision)).collect()
}

fn clarification(it: &AwaitingClarification) -> Parts {
    let kinds = it.accepted_response_kinds.as_deref().unwrap_or_default();
    let listed = it.choices.as_deref().unwrap_or_default();
    let question = exact(&it.question);
    let letters = choice_letters(listed.iter().map(|it| it.label.as_str()));
    let mut answers = Vec::new();
    let mut options = String::new();
    for (at, choice) in listed.iter().enumerate() {
        let label = exact(&choice.label);
        let letter = letters.as_ref().and_then(|it| it.get(at));
        let called = asks::choice(letter.map(String::as_str));
        let label = if label.is_empty() { called.clone() } else { label };
        options = sentences(&[&options, &format!("{} {label}", own(&format!("{called}:")))]);
        let choice_words = Choice { words: label, is_consent: false };
        answers.push((choice_words, Answer::Response(Response::Text(choice.value.clone()))));
    }
    if answers.is_empty() && kinds.contains(&ResponseKind::YesNo) {
        // A yes may let something happen, whatever the question is called.
        for (words, yes) in [(asks::NO, false), (asks::YES, true)] {
            let choice = Choice { words: words.to_owned(), is_consent: yes };
            answers.push((choice, Answer::Response(Response::YesNo(yes))));
        }
    }
    let takes = |kind: ResponseKind| kinds.contains(&kind);
    let how = match (listed.is_empty(), takes(ResponseKind::YesNo), takes(ResponseKind::Numeric)) {
        (false, ..) => asks::choose(letters.is_some(), takes(ResponseKind::Freetext)),
        (true, true, _) => asks::YES_OR_NO,
        (true, false, true) => asks::WITH_A_NUMBER,
        (true, false, false) => asks::IN_OWN_WORDS,
    };
    let silence = match it.default_response.as_deref().map(exact) {
        Some(assumed) if !assumed.is_empty() => {
            sentences(&[&format!("{} {assumed}", own(asks::ASSUMES))])
        }
        _ => own(asks::GOES_ON),
    };
    let context = it.context.as_deref().map(exact).unwrap_or_default();
    Parts {
        token: it.reply_token.clone(),
        asked: sentences(&[&question, &context, &options]),
        brief: (context.len() > LONG_REST)
            .then(|| (sentences(&[&question, &options]), sentences(&[&context]))),
        name: question,
        action: None,
        silence,
        how: own(how),
        answers,
    }
}
