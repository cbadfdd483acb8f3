//! What an announcer is told, and what it says back. Both are closed lists.

use std::time::Duration;

use aaep::event::human::Decision;
use aaep::reply::Response;
use aaep::{Event, SessionId};

use crate::utterance::{Order, Pace, Report};

/// The number by which a person can answer a question.
pub type AskNumber = u32;

/// Which hub it is of those that a person listens to, from 0.
pub type HubNumber = usize;

/// Something that an announcer is told.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// An event. Questions come as [`Input::Asked`] in its place.
    Event(&'a Event),
    /// A question waits for the person.
    Asked(Asked<'a>),
    /// A question is over, or nobody knows any more how it stands.
    Over {
        /// Which question.
        number: AskNumber,
        /// How it ended.
        ending: Ending,
    },
    /// The answer that the person gave here did not reach the producer. The question is asked again.
    AnswerFailed {
        /// Which question.
        number: AskNumber,
        /// Why, in words for people.
        why: &'a str,
    },
    /// There is more or less time to answer a question than before.
    TimeChanged {
        /// Which question.
        number: AskNumber,
        /// How much time is left.
        remaining: Duration,
        /// Whether the time stands still.
        is_paused: bool,
        /// How much more time the person asked for here, if that is why.
        wanted: Option<Duration>,
    },
    /// Something of a session was not heard.
    Gap {
        /// The session.
        session_id: &'a SessionId,
        /// How many events are missing, where that is known.
        missed: Option<u64>,
    },
    /// The line to the producer broke.
    LineBroken,
    /// The line is there again.
    LineBack,
    /// So many events were left out because the producer sent too many.
    LeftOut(u64),
    /// Something else about listening itself, in words for people.
    Notice(&'a str),
    /// What the person asked for just now, such as the list of questions: told before what agents have to say.
    Requested(&'a str),
    /// What came of something that the person typed just now: told at once, or not at all if the device does not work.
    /// What it interrupts is told again whole.
    Feedback(&'a str),
    /// The person answered a question before it was told to its end, which counts for nothing. They are told so at
    /// once, and where they have not come to its end yet, they are asked again.
    TooSoon {
        /// Which question.
        number: AskNumber,
        /// What they are told.
        text: &'a str,
    },
    /// Something about the hub, in words for people. Its name comes first where there are several.
    HubNotice(&'a str),
    /// What the device tells.
    Device(Report),
    /// What the person wants.
    Wish(Wish),
    /// Time has passed.
    Tick,
}

/// A question that waits for the person.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The number by which it can be answered.
    pub number: AskNumber,
    /// The event with the question.
    pub event: &'a Event,
    /// How much time is left to answer. Where the producer counts from presentation, see [`time_after_presentation`],
    /// it is the most that it could become until the producer says when it ends.
    ///
    /// [`time_after_presentation`]: crate::time_after_presentation
    pub remaining: Duration,
    /// Whether it can be answered from here.
    pub can_answer: bool,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The action may happen.
    Accepted(By),
    /// The action must not happen.
    Rejected(By),
    /// A clarification was given, or its default applies.
    Answered(By),
    /// A clarification was not given and has no default.
    Unanswered,
    /// The agent no longer needs to know.
    Withdrawn,
    /// Nobody knows.
    Unknown,
}

/// Who or what decided a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The person who listens here.
    You,
    /// Someone at another subscriber, or the person elsewhere.
    Elsewhere,
    /// A rule, and not a person.
    Rule,
    /// Someone of whom it is not known who it is.
    Someone,
    /// Nobody answered in time, and the default applies.
    Timeout,
    /// Nobody was there who could answer, and the default applies.
    Nobody,
}

/// What a person can wish for while listening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wish {
    /// Be quiet now. What waits is skipped, and so is the rest of what an agent is saying. What is critical, how a
    /// question was settled, and that an agent has finished are told all the same.
    Hush,
    /// Say the last thing again.
    Repeat,
    /// Say what was said before the last thing; each time one further back.
    Back,
    /// Say this question again whole, if it waits.
    Question(AskNumber),
    /// Say what was skipped.
    More,
    /// Say what every agent is doing.
    Status,
    /// Say what the agent said last, from its beginning.
    LastReply,
    /// Say what the agent said last exactly: code read out, nothing shortened.
    ExactText,
    /// Stop this and go on with the next thing.
    Skip,
    /// Go on at another pace, where there is one.
    Pace(Pace),
    /// Tell nothing but questions, how they were settled, and errors; or everything again.
    OnlyDecisions(bool),
}

/// What an announcer decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// For the device, in this order.
    pub orders: Vec<Order>,
    /// For whoever runs the announcer.
    pub outcomes: Vec<Outcome>,
}

/// Something for whoever runs the announcer.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The question is being told to the person from now on.
    Presenting(AskNumber),
    /// The question was told to the person whole, or as much of it as they wanted to hear: its time counts from now.
    Presented(AskNumber),
    /// The question was told to the person to its end. Only what they begin after that can be consent (ruling 33).
    PresentedWhole(AskNumber),
    /// The person answered the question at the device.
    Chosen {
        /// Which question.
        number: AskNumber,
        /// The answer.
        answer: Answer,
    },
    /// The person wants more time to answer the question.
    MoreTime(AskNumber),
    /// The device goes on at another pace, in words per minute.
    Pace(u64),
    /// The device does not work, and why, in words for people. Another device may say so.
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
