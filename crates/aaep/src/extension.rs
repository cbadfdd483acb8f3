//! Our own extension: what a hub tells a subscriber about delivery itself, and how people get more
//! time and certainty when they are asked.
//!
//! The hub states when one event stands for several, how an ask was settled, until when it can be
//! answered, and where the stream has a gap (rulings 8, 9, 18, 20). An agent may use a few of the
//! fields to state how long an ask may stay open, and for exactly which action it asks consent.
//! `asking` holds what subscribers say about time, `digest` the digests, and `instructing` what
//! people can tell agents. The data is in `extensions.agentvoice` as §7.5 demands, and events are
//! complete without it. The context URI is a UUID because that is the only kind of URI that we can
//! own without owning a domain. A breaking change takes a new one.

mod asking;
mod digest;
mod instructing;

use serde_json::Value as Json;

use crate::envelope::Extensions;
use crate::event::{DAY_S, Event};
use crate::form::{EventId, Prefix, ReplyToken, ToolName, Uri};
use crate::json::JsonValue;
use crate::object::{object, values};
use crate::read::{ANY, FieldType, MessageReader, Object, PathStep, between};
use crate::time::Timestamp;

pub use asking::{AskCapabilities, AskClock, AskExtend, AskPause, AskPresented, AskResume};
pub use digest::{ActionDigest, MAX_ARGUMENT_DEPTH, NoDigest, action_digest, stated_digest};
pub use instructing::{
    Accepts, AgentHello, AgentPrompt, AskWithdraw, Resume, SessionCancel, SessionSteer,
};

/// The prefix of the extension.
pub const PREFIX: &str = "agentvoice";

/// The context URI of the extension, version 1.
pub const CONTEXT: &str = "urn:uuid:ad788fbe-34bf-41c1-a6a9-7fc3ed86da4e";

object! {
    /// One event that stands for several, which the history keeps.
    Merged in "7.5", others Refused {
        /// How many events it stands for.
        required count: u64 = between(2, u64::MAX);
        /// The id of the last of them.
        required last_event_id: EventId;
    }
}

values! {
    /// How an ask ended.
    open AskOutcome {
        /// The action may happen.
        Accept = "accept",
        /// The action must not happen.
        Reject = "reject",
        /// A clarification was given, or its default applies.
        Answered = "answered",
        /// A clarification was not given and has no default.
        Unanswered = "unanswered",
        /// The producer no longer needs an answer.
        Withdrawn = "withdrawn",
    }
}

values! {
    /// What decided an ask.
    open DecidedBy {
        /// A person's reply.
        Reply = "reply",
        /// Time ran out, and the default applies.
        Timeout = "timeout",
        /// No subscriber could answer, and the default applies.
        NoListener = "no_listener",
        /// The producer withdrew the ask.
        Withdrawn = "withdrawn",
    }
}

object! {
    /// How an ask was settled, sent to every subscriber that was asked.
    Resolution in "7.5", others Refused {
        /// The token of the question.
        required reply_token: ReplyToken;
        /// How it ended.
        required outcome: AskOutcome;
        /// What decided it.
        required decided_by: DecidedBy;
    }
}

object! {
    /// The stream does not reach back to where the subscriber left it.
    Gap in "7.5", others Refused {
        /// The last event that the subscriber had.
        optional after_event_id: EventId;
        /// How many events are missing, where that is known.
        optional missed: u64;
    }
}

/// The fields that an agent may state itself. All others are reserved for the hub.
pub const AGENT_FIELDS: &[&str] =
    &["max_timeout_seconds", "stays_open", "asked_elsewhere", "tool", "action_digest", "project"];

/// The fields that a hub adds when an event arrives, before the rules see it.
pub const DOOR_FIELDS: &[&str] = &["publisher", "original"];

/// The most characters of an id that an agent chose itself.
pub const MAX_OWN_ID_CHARS: u64 = 256;

object! {
    /// The ids as the agent wrote them, where the specification wants another form.
    Original in "7.5", others Refused {
        /// What stands for `event_id`.
        optional event_id: String = between(1, MAX_OWN_ID_CHARS);
        /// What stands for `session_id`.
        optional session_id: String = between(1, MAX_OWN_ID_CHARS);
        /// What stands for `output_id`.
        optional output_id: String = between(1, MAX_OWN_ID_CHARS);
        /// What stands for `tool_call_id`.
        optional tool_call_id: String = between(1, MAX_OWN_ID_CHARS);
        /// What stands for `reply_token`.
        optional reply_token: String = between(1, MAX_OWN_ID_CHARS);
    }
}

impl Original {
    /// No field set: all ids have the required form.
    pub fn new() -> Self {
        Original {
            event_id: None,
            session_id: None,
            output_id: None,
            tool_call_id: None,
            reply_token: None,
            other: Object::new(),
        }
    }
}

impl Default for Original {
    fn default() -> Self {
        Original::new()
    }
}

object! {
    /// Until when an ask can be answered, after a change.
    Deadline in "7.5", others Refused {
        /// The token of the question.
        required reply_token: ReplyToken;
        /// The moment, by the clock of the event's own timestamp.
        required at: Timestamp;
        /// Whether the time stands still; then `at` is when it goes on at the latest, and ends.
        required paused: bool;
    }
}

object! {
    /// What the extension can say on an event.
    Delivery in "7.5", others Refused {
        /// The event stands for several.
        optional merged: Merged;
        /// The event tells how a question was settled.
        optional resolution: Resolution;
        /// The event follows a gap in the stream.
        optional gap: Gap;
        /// How many events of this session were not sent before its end; the history holds them.
        optional held_back: u64 = between(1, u64::MAX);
        /// The event tells until when a question can be answered.
        optional deadline: Deadline;
        /// Of an agent's question: how long it may stay open at most, in seconds from when it was asked.
        optional max_timeout_seconds: u64 = between(1, DAY_S);
        /// Of an agent's question: it can be answered until its time is over, also if nobody listens meanwhile.
        optional stays_open: bool;
        /// Of an agent's confirmation: the agent asks the person in a window of its own as well, which decides if
        /// nobody answers here.
        optional asked_elsewhere: bool;
        /// Of an agent's confirmation: the tool that is asked for.
        optional tool: ToolName;
        /// Of an agent's confirmation or tool: which tool with which arguments it is.
        optional action_digest: ActionDigest;
        /// Of any event of an agent: where it works, in the words of a person, such as `work/shop`.
        optional project: String = between(1, 200);
        /// Of a piece of text: how far the agent has counted its output with it, where that is not how far it is
        /// counted here, because its text was normalized.
        optional counted_to: u64;
        /// Of a question: the principal that asks, as the hub knows it, such as `local` or `token:tok_1`.
        optional publisher: String = between(1, 1024);
        /// The ids as the agent wrote them, where they had another form.
        optional original: Original;
        /// Of a question that is sent late or again: how many seconds are left to answer it.
        optional seconds_left: u64 = between(0, DAY_S);
    }
}

impl Delivery {
    /// No field set.
    pub fn new() -> Self {
        Delivery {
            merged: None,
            resolution: None,
            gap: None,
            held_back: None,
            deadline: None,
            max_timeout_seconds: None,
            stays_open: None,
            asked_elsewhere: None,
            tool: None,
            action_digest: None,
            project: None,
            counted_to: None,
            publisher: None,
            original: None,
            seconds_left: None,
            other: Object::new(),
        }
    }

    /// Reads the data of this extension on an event, if there is any that can be understood.
    pub fn of(event: &Event) -> Option<Self> {
        let data = event.extensions.as_ref()?.0.get(&Prefix::parse(PREFIX).ok()?)?;
        let text = serde_json::to_vec(data).ok()?;
        let document = crate::json::JsonDocument::parse(&text).ok()?;
        Delivery::read(document.root(), &ANY, &mut MessageReader::new(crate::Mode::Tolerant))
    }

    /// Whether an event states something that only the hub can know, whether it can be understood
    /// or not.
    pub fn is_for_the_hub_to_say(event: &Event) -> bool {
        has_fields_beside(event, &[AGENT_FIELDS])
    }

    /// The same check for events to which the hub has already added its own fields on arrival.
    pub fn is_for_the_rules_to_say(event: &Event) -> bool {
        has_fields_beside(event, &[AGENT_FIELDS, DOOR_FIELDS])
    }

    /// Puts the data on an event, and declares the vocabulary there.
    ///
    /// # Panics
    /// Never: prefix and URI are constants of the right form.
    pub fn put_on(&self, event: &mut Event) {
        let prefix = Prefix::parse(PREFIX).expect("a constant of the right form");
        let uri = Uri::parse(CONTEXT).expect("a constant of the right form");
        let data = match serde_json::to_value(self) {
            Ok(Json::Object(data)) => data,
            _ => Object::new(),
        };
        event.extensions.get_or_insert_default().0.insert(prefix, data);
        event.envelope.context.declare(uri);
    }
}

/// Whether an event has fields of the extension that are not in any of these lists.
fn has_fields_beside(event: &Event, lists: &[&[&str]]) -> bool {
    let own = event.extensions.iter().flat_map(|it| &it.0).filter(|it| it.0.as_str() == PREFIX);
    let is_listed = |key: &String| lists.iter().any(|list| list.contains(&key.as_str()));
    own.flat_map(|(_, data)| data.keys()).any(|key| !is_listed(key))
}

impl Default for Delivery {
    fn default() -> Self {
        Delivery::new()
    }
}

/// Whether an event has data of this extension.
pub(crate) fn is_used(extensions: &Extensions) -> bool {
    extensions.0.keys().any(|prefix| prefix.as_str() == PREFIX)
}

/// Checks the data of this extension on an event. A subscriber tolerates violations there.
pub(crate) fn check<'t>(event: JsonValue<'t, '_>, reader: &mut MessageReader<'t>) {
    let Some(data) = event.field("extensions").and_then(|extensions| extensions.field(PREFIX))
    else {
        return;
    };
    reader.optional(|reader| {
        reader.within(PathStep::Key("extensions"), Some("7.5"), |reader| {
            reader.within(PathStep::Key(PREFIX), None, |reader| Delivery::read(data, &ANY, reader))
        })
    });
}
