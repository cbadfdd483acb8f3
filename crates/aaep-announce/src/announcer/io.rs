//! The inputs and outputs of an announcer. Both are closed lists.

use std::time::Duration;

use aaep::event::human::Decision;
use aaep::extension::AskOutcome;
use aaep::reply::Response;
use aaep::{Event, SessionId};

use crate::utterance::{DeviceReport, Order, Pace};

/// The number by which a person answers a question.
pub type AskNumber = u32;

/// The index of a hub among those that a person listens to.
pub type HubNumber = usize;

/// An input of an announcer.
#[derive(Debug, Clone)]
pub enum AnnouncerInput<'a> {
    /// An event. A question comes as [`AnnouncerInput::Asked`] instead.
    Event(&'a Event),
    /// A question waits for the person.
    Asked(Asked<'a>),
    /// A question is over, or its outcome is unknown.
    Over {
        /// Which question.
        number: AskNumber,
        /// How it ended.
        ending: AskEnding,
    },
    /// The answer that the person gave here does not count. The question is asked again.
    AnswerFailed {
        /// Which question.
        number: AskNumber,
        /// Why, in words for people.
        why: &'a str,
    },
    /// The time to answer a question has changed.
    TimeChanged {
        /// Which question.
        number: AskNumber,
        /// How much time is left.
        remaining: Duration,
        /// Whether the clock is paused.
        is_paused: bool,
        /// How much more time the person asked for here, if that is the reason.
        wanted: Option<Duration>,
    },
    /// Some events of a session were missed.
    Gap {
        /// The session.
        session_id: &'a SessionId,
        /// How many events are missing, if known.
        missed: Option<u64>,
    },
    /// The connection to the producer broke.
    LineBroken,
    /// The connection to the producer is back.
    LineBack,
    /// This many events were dropped because the producer sent too many.
    LeftOut(u64),
    /// Something else about listening itself, in words for people.
    Notice(&'a str),
    /// Something that the person just requested, such as the list of questions. It is announced before the words of
    /// agents.
    Requested(&'a str),
    /// The result of something that the person just typed. It is announced at once, or not at all if the device does
    /// not work. The utterance that it interrupts is said again whole.
    Feedback(&'a str),
    /// The person answered before the question was presented to its end, so the answer does not count. They are told
    /// so at once, and asked again if the question has not been presented to its end meanwhile.
    TooSoon {
        /// Which question.
        number: AskNumber,
        /// What to tell them.
        text: &'a str,
    },
    /// Something about the hub, in words for people. If there are several hubs, its name comes first.
    HubNotice(&'a str),
    /// A report of the device.
    Device(DeviceReport),
    /// A request of the person.
    Request(ListeningRequest),
    /// Time has passed.
    Tick,
}

/// A question that waits for the person.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The number by which it is answered.
    pub number: AskNumber,
    /// The event with the question.
    pub event: &'a Event,
    /// How much time is left to answer. If the producer counts from presentation (see [`time_after_presentation`]),
    /// this is the longest possible time until the producer says when it ends. [`Duration::MAX`] if the agent waits as
    /// long as the person likes.
    ///
    /// [`time_after_presentation`]: crate::time_after_presentation
    pub remaining: Duration,
    /// Whether it can be answered from here.
    pub can_answer: bool,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskEnding {
    /// The action may happen.
    Accepted(AnsweredBy),
    /// The action must not happen.
    Rejected(AnsweredBy),
    /// A clarification was given, or its default applies.
    Answered(AnsweredBy),
    /// A clarification was not given and has no default.
    Unanswered,
    /// The agent withdrew the question.
    Withdrawn,
    /// The outcome is unknown.
    Unknown,
}

impl AskEnding {
    /// The ending for an outcome that this decided.
    pub fn new(outcome: &AskOutcome, by: AnsweredBy) -> Self {
        match outcome {
            AskOutcome::Accept => AskEnding::Accepted(by),
            AskOutcome::Reject => AskEnding::Rejected(by),
            AskOutcome::Answered => AskEnding::Answered(by),
            AskOutcome::Unanswered => AskEnding::Unanswered,
            AskOutcome::Withdrawn => AskEnding::Withdrawn,
            AskOutcome::Other(_) => AskEnding::Unknown,
        }
    }
}

/// Who or what decided a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnsweredBy {
    /// The person who listens here.
    You,
    /// Someone at another subscriber, or the person elsewhere.
    Elsewhere,
    /// A rule, not a person.
    Rule,
    /// A person, but it is not known which one.
    Someone,
    /// Nobody answered in time, and the default applies.
    Timeout,
    /// Nobody was connected who could answer, and the default applies.
    Nobody,
}

/// What a person can request while listening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListeningRequest {
    /// Be quiet now. Waiting utterances are skipped, and so is the rest of the current text. Critical utterances,
    /// settlements and ends are still announced.
    Hush,
    /// Say the last thing again.
    Repeat,
    /// Say what was said before the last thing. Each request goes one step further back.
    Back,
    /// Say this question again whole, if it is still open.
    Question(AskNumber),
    /// Say what was skipped.
    More,
    /// Say what every agent is doing.
    Status,
    /// Say what the agent said last, from its beginning.
    LastReply,
    /// Say what the agent said last exactly: code read out, nothing shortened.
    ExactText,
    /// Stop this and continue with the next thing.
    Skip,
    /// Change the pace, if the device has one.
    Pace(Pace),
    /// Announce only questions, their settlements, and errors; or everything again.
    OnlyDecisions(bool),
}

/// What an announcer decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// Orders for the device, in this order.
    pub orders: Vec<Order>,
    /// Outcomes for the program that runs the announcer.
    pub outcomes: Vec<AnnouncerOutcome>,
}

/// Something for the program that runs the announcer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnnouncerOutcome {
    /// The device has begun to present the question.
    Presenting(AskNumber),
    /// The question was presented whole, or as much of it as the person wanted to hear. Its time counts from now.
    Presented(AskNumber),
    /// The question was presented to its end. Only an answer that begins after that can be consent (ruling 33). This
    /// comes again if the question is told again after [`AnnouncerOutcome::AgentSpoke`].
    PresentedWhole(AskNumber),
    /// The agent that asked the question says something else. Its words may sound like another question.
    AgentSpoke(AskNumber),
    /// The person answered the question at the device.
    Chosen {
        /// Which question.
        number: AskNumber,
        /// The answer.
        answer: Answer,
    },
    /// The person wants more time to answer the question.
    MoreTime(AskNumber),
    /// The device continues at another pace, in words per minute.
    Pace(u64),
    /// The device does not work; the reason is in words for people. Another device may announce it.
    Trouble(String),
    /// The device works again.
    Works,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To a confirmation.
    Decision(Decision),
    /// To a clarification.
    Response(Response),
}

impl Answer {
    /// Whether it is a plain no, which lets nothing happen.
    pub fn is_no(&self) -> bool {
        matches!(
            self,
            Answer::Decision(Decision::Reject) | Answer::Response(Response::YesNo(false))
        )
    }
}
