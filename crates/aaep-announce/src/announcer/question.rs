//! The words of a question and its possible answers.
//!
//! The agent's question is said exactly and completely. It never passes through the rewording for ordinary text.

use std::time::Duration;

use aaep::event::human::{AwaitingClarification, AwaitingConfirmation, Decision, ResponseKind};
use aaep::extension::Delivery;
use aaep::reply::Response;
use aaep::{ActionStakes, Event, Payload, ReplyToken, StatedUndo};

use super::clock::AskClock;
use super::danger::rank;
use super::io::{Answer, AskNumber, Asked};
use super::phrase::{TextLanguage, sentences};
use super::sessions::HubSessionKey;
use crate::choices::choice_letters;
use crate::english::asks;
use crate::utterance::{Choice, UtteranceId};
use crate::words::{exact, own};

/// The longest action that a warning repeats, in bytes. For a longer one it gives only the question's number.
const MAX_REMINDER: usize = 160;
/// In a question longer than this, in bytes, the risk comes before the long parts.
const LONG_QUESTION: usize = 300;
/// Anything besides the action and the risk that is longer than this, in bytes, is said only on request.
const LONG_REST: usize = 600;
/// Where an agent puts the arguments of its tool.
const ARGUMENTS: &str = "arguments";

/// A question that waits for the person.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each changes for itself")]
pub(super) struct AnnouncedAsk {
    pub(super) number: AskNumber,
    pub(super) session_id: HubSessionKey,
    /// A larger rank is announced sooner.
    pub(super) rank: Option<ActionStakes>,
    pub(super) token: ReplyToken,
    pub(super) text_language: TextLanguage,
    /// The utterance ids under which it went to the device, the newest last.
    pub(super) ids: Vec<UtteranceId>,
    /// Those ids that had the whole question, and not only the warning about its time.
    pub(super) whole_ids: Vec<UtteranceId>,
    pub(super) presentation: PresentationProgress,
    /// Whether its agent has said something else since it was presented whole.
    pub(super) is_spoken_over: bool,
    pub(super) is_answered: bool,
    /// Whether its outcome is unknown.
    pub(super) is_doubtful: bool,
    pub(super) is_warned: bool,
    /// Whether it was named in an overview.
    pub(super) is_named: bool,
    pub(super) clock: AskClock,
    /// The action or question, and its consequences.
    asked: String,
    /// For a long question: the part that must be said, and the rest, which is said on request.
    brief: Option<(String, String)>,
    pub(super) is_rest_told: bool,
    /// The action or the question alone.
    pub(super) name: String,
    /// For a confirmation: the tool and the action.
    pub(super) action: Option<(Option<String>, String)>,
    /// What happens if nobody answers.
    silence: String,
    /// How to answer.
    how: String,
    answers: Vec<(Choice, Answer)>,
}

/// How far a question was presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PresentationProgress {
    NotYet,
    Begun,
    /// Not to its end: the person wanted to hear no more, or its time on the display was over.
    Left,
    /// To its end. Only now can the person consent to it (ruling 33).
    Whole,
}

impl AnnouncedAsk {
    pub(super) fn has_begun(&self) -> bool {
        self.presentation >= PresentationProgress::Begun
    }

    /// The question of an event, if the event asks one.
    pub(super) fn of(asked: &Asked<'_>, session_id: HubSessionKey, now: Duration) -> Option<Self> {
        let event = asked.event;
        let text_language = TextLanguage::of(event, event.summary());
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
        Some(AnnouncedAsk {
            number: asked.number,
            session_id,
            rank: rank(event),
            token: parts.token,
            text_language,
            ids: Vec::new(),
            whole_ids: Vec::new(),
            presentation: PresentationProgress::NotYet,
            is_spoken_over: false,
            is_answered: false,
            is_doubtful: false,
            is_warned: false,
            is_named: false,
            clock: AskClock::of(event, now, asked.remaining),
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

    /// The question as it is announced now: first the action, then its consequences, the time, and how to answer.
    ///
    /// For a long question only the action and the risk are said, and that there is more, unless the device takes no
    /// time.
    pub(super) fn words(&self, now: Duration, takes_no_time: bool) -> String {
        let asked = if takes_no_time { self.asked.clone() } else { self.asked_briefly() };
        sentences(&[&asked, &self.time_and_how(now)])
    }

    /// What is asked. For a long question only the action and the risk, and that there is more.
    pub(super) fn asked_briefly(&self) -> String {
        match &self.brief {
            Some((brief, _)) => sentences(&[brief, &own(asks::MORE)]),
            None => sentences(&[&self.asked]),
        }
    }

    /// How long the person has, what happens without an answer, and how to answer.
    pub(super) fn time_and_how(&self, now: Duration) -> String {
        sentences(&[&self.time(now), &self.how])
    }

    /// The part of a long question that is said on request.
    pub(super) fn rest(&self) -> Option<&str> {
        self.brief.as_ref().map(|(_, rest)| rest.as_str())
    }

    /// The question for a person who cannot answer it here. Its time is not known.
    pub(super) fn without_time(&self) -> String {
        sentences(&[&self.asked, &self.silence, &self.how])
    }

    /// The question in a replay. Its outcome is announced after it.
    pub(super) fn past(&self) -> String {
        sentences(&[&self.asked])
    }

    /// The question again, shortly before its time is over, and how to answer.
    pub(super) fn warning(&self, now: Duration) -> [String; 2] {
        let is_long = self.name.len() > MAX_REMINDER;
        let number = if is_long { own(&asks::question(self.number)) } else { String::new() };
        let name = if is_long { "" } else { self.name.as_str() };
        let left = match self.remaining(now) {
            Some(left) => own(&asks::only_left(left)),
            None => String::new(),
        };
        [sentences(&[&left, &number, name]), sentences(&[&self.silence, &self.how])]
    }

    pub(super) fn remaining(&self, now: Duration) -> Option<Duration> {
        self.clock.remaining(now)
    }

    fn time(&self, now: Duration) -> String {
        match self.remaining(now) {
            Some(left) => {
                format!("{} {}", own(&asks::you_have(left)), self.silence)
            }
            None if self.clock == AskClock::Endless => own(asks::WAITS_FOR_YOU),
            None => format!("{} {}", own(asks::TIME_STANDS_STILL), self.silence),
        }
    }

    /// The question as the beginning of a sentence about it, without its final punctuation mark.
    pub(super) fn heading(&self) -> String {
        let ends = |it: &str| it.ends_with(|c: char| c.is_alphanumeric());
        let name = self.name.strip_suffix(['.', '?']).filter(|it| ends(it));
        format!("{}:", name.unwrap_or(&self.name))
    }

    /// The name of the question once another one was asked: its words, or its number if they are long. Question
    /// numbers of the past mean nothing.
    pub(super) fn short_heading(&self, is_past: bool) -> String {
        if is_past || self.name.len() <= MAX_REMINDER {
            self.heading()
        } else {
            asks::about(self.number)
        }
    }

    pub(super) fn choices(&self) -> Vec<Choice> {
        self.answers.iter().map(|(choice, _)| choice.clone()).collect()
    }

    /// The answer at this position of the choices.
    pub(super) fn answer(&self, at: usize) -> Option<Answer> {
        self.answers.get(at).map(|(_, answer)| answer.clone())
    }
}

/// The parts from which a question is put together.
struct AskParts {
    token: ReplyToken,
    asked: String,
    brief: Option<(String, String)>,
    name: String,
    action: Option<(Option<String>, String)>,
    silence: String,
    how: String,
    answers: Vec<(Choice, Answer)>,
}

fn confirmation(it: &AwaitingConfirmation, event: &Event) -> AskParts {
    let stated = Delivery::of(event);
    let is_elsewhere = stated.as_ref().is_some_and(|it| it.asked_elsewhere == Some(true));
    let tool = stated.and_then(|it| it.tool).map(|it| it.as_str().to_owned());
    let action = exact(&it.action);
    let consequence = exact(&it.consequence);
    let is_final = it.stakes().undo == StatedUndo::Impossible;
    let undo = match is_final {
        // The agent may already have said this in the same words.
        true if consequence.ends_with(asks::CANNOT_BE_UNDONE) => "",
        true => asks::CANNOT_BE_UNDONE,
        false => asks::undo(it),
    };
    let risk = asks::risk(it.risk_level.as_ref());
    let with = tool.as_ref().map(|it| own(&asks::tool(&exact(it)))).unwrap_or_default();
    let arguments = it.extra_context.as_ref().and_then(|it| it.get(ARGUMENTS));
    let arguments = arguments.map(|it| own(&asks::arguments(&exact(&it.to_string()))));
    let arguments = arguments.unwrap_or_default();
    let silence = asks::silence(it.default_decision, is_elsewhere);
    let answers = decisions(it.allowed_replies.as_deref());
    let how = match answers.as_slice() {
        [(choice, _)] => asks::only_answer(&choice.words),
        _ => asks::YES_OR_NO.to_owned(),
    };
    let rest = sentences(&[&consequence, &arguments]);
    // The risk comes before the long parts, and so does the warning that the action cannot be undone, whatever the
    // agent says later.
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
    AskParts {
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

/// "No" comes first, so that an accidental choice does nothing. It is offered even if the agent does not allow it.
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

fn clarification(it: &AwaitingClarification) -> AskParts {
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
    AskParts {
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
