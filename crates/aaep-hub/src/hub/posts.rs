//! What people can tell agents.
//!
//! An agent that says what it accepts has a post: there lies what people told it until it takes it, over
//! its socket or by asking for it. A post is forgotten when the agent has been away for a while. Nothing of
//! it is stored: an instruction is for an agent that is there, and who gave it is told if there is none.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use aaep::extension::{Accepts, Delivery};
use aaep::{Message, SessionId};
use aaep_engine::{AgentTags, Engine};
use aaep_transport::wire::ConnectionKey;
use serde::Serialize;
use tokio::sync::oneshot;

use super::entry::shortened;
use super::holders::NameClaim;
use super::owner::Owner;
use super::subscribers::Told;
use crate::access::{Principal, Scope};
use crate::audit::Entry;
use crate::bounds::MAX_AGENT_ID_BYTES;
use crate::store::Change;

/// How long an agent may be away before its post is forgotten.
const POST_US: u64 = 90_000_000;

/// How many agents may have a post.
const MAX_POSTS: usize = 1024;

/// How many agents of one principal may have a post.
const MAX_POSTS_PER_PRINCIPAL: usize = MAX_POSTS / 8;

/// How many instructions may lie in one post. Past it, only cancellations are taken for that agent.
const MAX_INSTRUCTIONS: usize = 64;

/// How many of them may be of one principal.
const MAX_INSTRUCTIONS_EACH: usize = MAX_INSTRUCTIONS / 4;

/// How many bytes the words of the instructions in one post may have, and those of one principal.
const MAX_POST_BYTES: usize = 512 * 1024;
const MAX_POST_BYTES_EACH: usize = MAX_POST_BYTES / 4;

/// How many events of a session are looked at for the id that its agent gave it.
const MAX_LOOKED_BACK: usize = 16;

/// The posts of agents, by name.
#[derive(Default)]
pub(super) struct Posts(BTreeMap<String, Post>);

impl Posts {
    /// Whether this principal is there for the agent of this name.
    pub(super) fn is_kept_by(&self, agent_id: &str, principal: u64, now_us: u64) -> bool {
        let post = self.0.get(agent_id).filter(|post| post.is_alive(now_us));
        post.is_some_and(|post| post.principal == principal)
    }
}

/// Where an agent gets what people tell it.
struct Post {
    /// Who speaks for the agent.
    principal: u64,
    /// What decides who may hear and tell it.
    tags: AgentTags,
    accepts: Vec<Accepts>,
    /// The number of the last instruction.
    last: u64,
    waiting: VecDeque<WaitingInstruction>,
    /// The agent's socket, if it has one.
    connection: Option<ConnectionKey>,
    /// Wakes an agent that asks for instructions.
    poller: Option<oneshot::Sender<()>>,
    seen_us: u64,
}

/// An instruction that its agent has not taken yet.
struct WaitingInstruction {
    /// The id of the principal that gave it.
    from: String,
    instruction: Instruction,
}

/// What a person wants of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Instruction {
    /// Its number in the post of the agent, larger than that of the one before.
    pub number: u64,
    /// `agentvoice:agent.prompt`, `agentvoice:session.cancel` or `agentvoice:session.steer`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The session that is meant; a new one for a prompt.
    pub session_id: SessionId,
    /// The same session as its agent named it, where that has another form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_session_id: Option<String>,
    /// What the person said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why, for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An agent that can be told things.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agent {
    /// Its name.
    pub agent_id: String,
    /// How people hear it called, if that is another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// What it can be told.
    pub accepts: Vec<Accepts>,
    /// Its sessions that run.
    pub sessions: Vec<SessionId>,
}

/// Why no agent was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotInstructed {
    /// Whoever said it may not tell agents anything. It takes the scope reply.
    NotAllowed,
    /// No agent is there that can be told this.
    NoAgent,
    /// The agent has not taken what it was told before.
    Full,
}

impl fmt::Display for NotInstructed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotInstructed::NotAllowed => {
                "You may listen, but not tell agents what to do. Ask for a token with the scope reply."
            }
            NotInstructed::NoAgent => {
                "No agent is there that accepts this. GET /aaep/v1/agents lists those that accept something."
            }
            NotInstructed::Full => {
                "The agent has not taken what it was told before. Try again when it has."
            }
        })
    }
}

impl Posts {
    /// How many posts a principal has.
    fn of(&self, principal: u64) -> usize {
        self.0.values().filter(|post| post.principal == principal).count()
    }
}

impl Owner {
    /// An agent says what it can be told. Gives back whether it may speak under that name.
    pub(super) fn declare(
        &mut self,
        who: &Principal,
        principal: u64,
        agent_id: &str,
        accepts: Vec<Accepts>,
        connection: Option<ConnectionKey>,
    ) -> bool {
        if agent_id.len() > MAX_AGENT_ID_BYTES {
            return false;
        }
        let now_us = self.clock.now().monotonic_us;
        self.posts.0.retain(|_, post| {
            post.connection.is_some() || post.seen_us.saturating_add(POST_US) > now_us
        });
        // Nobody would hear that a name changed hands.
        if self.speak_as(who, principal, (agent_id, NameClaim::OwnOrNew)).is_err() {
            return false;
        }
        if let Some(post) = self.posts.0.get_mut(agent_id).filter(|it| it.principal == principal) {
            post.accepts = accepts;
            post.seen_us = now_us;
            post.connection = connection.or(post.connection);
        } else if self.posts.0.len() < MAX_POSTS
            && self.posts.of(principal) < MAX_POSTS_PER_PRINCIPAL
        {
            let waiting = VecDeque::new();
            let (last, poller, seen_us) = (0, None, now_us);
            let tags = who.agent_tags(agent_id);
            let post =
                Post { principal, tags, accepts, last, waiting, connection, poller, seen_us };
            self.posts.0.insert(agent_id.to_owned(), post);
        } else {
            return false;
        }
        if let Some(connection) = connection {
            self.deliver_waiting(agent_id, connection);
        }
        true
    }

    /// What waited for an agent goes to its new socket.
    fn deliver_waiting(&mut self, agent_id: &str, connection: ConnectionKey) {
        let waiting = self.posts.0.get_mut(agent_id).map(|post| std::mem::take(&mut post.waiting));
        for waiting in waiting.into_iter().flatten() {
            self.tell_agent(connection, &waiting.instruction);
        }
    }

    /// The socket of an agent is gone.
    pub(super) fn agent_gone(&mut self, connection: ConnectionKey) {
        let now_us = self.clock.now().monotonic_us;
        for post in self.posts.0.values_mut() {
            if post.connection == Some(connection) {
                post.connection = None;
                post.seen_us = now_us;
            }
        }
    }

    /// The agents that this principal may hear and tell something.
    pub(super) fn told_agents(&self, principal: &Principal) -> Vec<Agent> {
        let now_us = self.clock.now().monotonic_us;
        let hearing = principal.hearing();
        let alive = self.posts.0.iter().filter(|(_, post)| post.is_alive(now_us));
        let heard = alive.filter(|(_, post)| hearing.includes(&post.tags));
        let agents = heard.map(|(agent_id, post)| {
            let running = self.engine.running_sessions();
            let own = running.filter(|(id, principal)| {
                *principal == post.principal && self.engine.speakers(id).any(|it| it == agent_id)
            });
            let sessions: Vec<SessionId> = own.map(|(id, _)| id.clone()).collect();
            let speakers = sessions.iter().filter_map(|id| self.engine.speaker(id, agent_id));
            let agent_name = speakers.last().and_then(|it| it.agent_name.clone());
            let (agent_id, accepts) = (agent_id.clone(), post.accepts.clone());
            Agent { agent_id, agent_name, accepts, sessions }
        });
        agents.collect()
    }

    /// What waits for an agent after a number, and if nothing does, someone who is woken when it does.
    pub(super) fn inbox(
        &mut self,
        principal: u64,
        agent_id: &str,
        after: u64,
    ) -> Option<(Vec<Instruction>, Option<oneshot::Receiver<()>>)> {
        let now_us = self.clock.now().monotonic_us;
        let post = self.posts.0.get_mut(agent_id).filter(|post| post.principal == principal)?;
        post.seen_us = now_us;
        post.waiting.retain(|waiting| waiting.instruction.number > after);
        if !post.waiting.is_empty() {
            let waiting = post.waiting.iter().map(|waiting| waiting.instruction.clone());
            return Some((waiting.collect(), None));
        }
        let (sender, receiver) = oneshot::channel();
        post.poller = Some(sender);
        Some((Vec::new(), Some(receiver)))
    }

    /// A subscriber tells an agent something.
    pub(super) fn instruct(
        &mut self,
        principal: &Principal,
        number: u64,
        message: Message,
    ) -> Told {
        let (subscription, agent_id, wish) = match message {
            Message::AgentPrompt(it) => {
                (it.subscription_id, it.agent_id, Wish::Prompt { text: it.text })
            }
            Message::SessionCancel(it) => {
                let reason = it.reason.map(|reason| reason.to_string());
                (it.subscription_id, None, Wish::Cancel { session_id: it.session_id, reason })
            }
            Message::SessionSteer(it) => {
                let wish = Wish::Steer { session_id: it.session_id, text: it.text };
                (it.subscription_id, None, wish)
            }
            _ => return Told::NotForHere,
        };
        match self.engine.subscription(&subscription) {
            Some((_, whose)) if whose == number => {}
            _ => return Told::NoSuchSubscription,
        }
        if principal.is_local_program() && !self.is_allowed_program(number) {
            return Told::NotInstructed(NotInstructed::NotAllowed);
        }
        match self.instruct_agent(principal, agent_id.as_deref(), wish) {
            Ok(session_id) => Told::Instructed(session_id),
            Err(why) => Told::NotInstructed(why),
        }
    }

    /// Lays an instruction into the post of the agent that is meant.
    pub(super) fn instruct_agent(
        &mut self,
        principal: &Principal,
        agent_id: Option<&str>,
        wish: Wish,
    ) -> Result<SessionId, NotInstructed> {
        if !principal.scopes.has(Scope::Reply) {
            return Err(NotInstructed::NotAllowed);
        }
        let now_us = self.clock.now().monotonic_us;
        // The agents that are meant: those of a session, or the one that was named, or any.
        let speaks_in = |session_id: &SessionId, name: &str, post: &Post| {
            !self.engine.has_ended(session_id)
                && self.engine.principal_of(session_id) == Some(post.principal)
                && self.engine.speakers(session_id).any(|it| it == name)
        };
        let is_meant = |name: &str, post: &Post| match &wish {
            Wish::Prompt { .. } => agent_id.is_none_or(|meant| meant == name),
            Wish::Cancel { session_id, .. } | Wish::Steer { session_id, .. } => {
                speaks_in(session_id, name, post)
            }
        };
        let hearing = principal.hearing();
        let accepts = wish.accepts();
        let fits = |name: &str, post: &Post| {
            post.is_alive(now_us)
                && post.accepts.contains(&accepts)
                && is_meant(name, post)
                && hearing.includes(&post.tags)
        };
        // Of several that fit, the one that was seen last.
        let fitting = self.posts.0.iter().filter(|(key, post)| fits(key, post));
        let agent = fitting.max_by_key(|(_, post)| post.seen_us).map(|(name, _)| name.clone());
        let agent = agent.ok_or(NotInstructed::NoAgent)?;
        let post = self.posts.0.get_mut(&agent).ok_or(NotInstructed::NoAgent)?;
        if post.connection.is_none() && !post.has_room(&principal.id, &wish) {
            return Err(NotInstructed::Full);
        }
        post.last += 1;
        let mut instruction = wish.instruction(post.last).ok_or(NotInstructed::NoAgent)?;
        instruction.original_session_id = original_session(&self.engine, &instruction.session_id);
        let session_id = instruction.session_id.clone();
        self.status.metrics.instructed();
        let entry = audit_entry(self.clock.now().unix_us, &principal.id, &agent, &instruction);
        self.batch.changes.push(Change::Audit(entry));
        if let Some(connection) = post.connection {
            self.tell_agent(connection, &instruction);
            return Ok(session_id);
        }
        if instruction.kind == CANCEL {
            // One is enough, and so there are never more than sessions.
            post.waiting.retain(|waiting| !waiting.instruction.cancels(&session_id));
        }
        post.waiting.push_back(WaitingInstruction { from: principal.id.clone(), instruction });
        if let Some(poller) = post.poller.take() {
            self.answer(poller, ());
        }
        Ok(session_id)
    }
}

impl Post {
    fn is_alive(&self, now_us: u64) -> bool {
        self.connection.is_some() || self.seen_us.saturating_add(POST_US) > now_us
    }

    /// Whether one more of this principal may lie here. Whoever wants something to end is never turned away.
    fn has_room(&self, principal: &str, wish: &Wish) -> bool {
        let text = match wish {
            Wish::Cancel { .. } => return true,
            Wish::Prompt { text } | Wish::Steer { text, .. } => text,
        };
        let all = self.waiting.iter().filter(|waiting| waiting.instruction.kind != CANCEL);
        let bytes =
            |waiting: &WaitingInstruction| waiting.instruction.text.as_ref().map_or(0, String::len);
        let (mut count, mut own, mut in_all, mut of_own) = (0, 0, text.len(), text.len());
        for waiting in all {
            count += 1;
            in_all += bytes(waiting);
            if waiting.from == principal {
                own += 1;
                of_own += bytes(waiting);
            }
        }
        count < MAX_INSTRUCTIONS
            && own < MAX_INSTRUCTIONS_EACH
            && in_all <= MAX_POST_BYTES
            && of_own <= MAX_POST_BYTES_EACH
    }
}

/// The kind of an instruction that ends a session.
const CANCEL: &str = "agentvoice:session.cancel";

/// The kind of an instruction to go on in another way.
const STEER: &str = "agentvoice:session.steer";

impl Instruction {
    /// Whether it cancels this session.
    fn cancels(&self, session_id: &SessionId) -> bool {
        self.kind == CANCEL && self.session_id == *session_id
    }
}

/// What a person wants.
pub(super) enum Wish {
    Prompt { text: String },
    Cancel { session_id: SessionId, reason: Option<String> },
    Steer { session_id: SessionId, text: String },
}

impl Wish {
    fn accepts(&self) -> Accepts {
        match self {
            Wish::Prompt { .. } => Accepts::Prompt,
            Wish::Cancel { .. } => Accepts::Cancel,
            Wish::Steer { .. } => Accepts::Steer,
        }
    }

    /// The instruction for the agent. None only if the system has no randomness for a new session.
    fn instruction(self, number: u64) -> Option<Instruction> {
        Some(match self {
            Wish::Prompt { text } => Instruction {
                number,
                kind: "agentvoice:agent.prompt",
                session_id: new_session()?,
                original_session_id: None,
                text: Some(text),
                reason: None,
            },
            Wish::Cancel { session_id, reason } => {
                let original_session_id = None;
                Instruction {
                    number,
                    kind: CANCEL,
                    session_id,
                    original_session_id,
                    text: None,
                    reason,
                }
            }
            Wish::Steer { session_id, text } => Instruction {
                number,
                kind: STEER,
                session_id,
                original_session_id: None,
                text: Some(text),
                reason: None,
            },
        })
    }
}

/// What the audit log says of an instruction. The words of a prompt are left out: its session may never begin, and
/// then nobody could delete them with it.
fn audit_entry(unix_us: i64, who: &str, agent_id: &str, instruction: &Instruction) -> Entry {
    let (what, details) = match instruction.kind {
        CANCEL => ("cancel", None),
        STEER => ("steer", instruction.text.clone()),
        _ => ("prompt", None),
    };
    Entry {
        unix_us,
        kind: "instructed",
        session_id: Some(instruction.session_id.clone()),
        reply_token: None,
        who: Some(who.to_owned()),
        outcome: format!("{what} for {}", shortened(agent_id)),
        details,
    }
}

/// The id that the agent of a session gave it, if that has another form.
fn original_session(engine: &Engine, session_id: &SessionId) -> Option<String> {
    let newest = engine.newest_events(session_id).take(MAX_LOOKED_BACK);
    newest.filter_map(Delivery::of).find_map(|said| said.original?.session_id)
}

/// An id for a session that nobody can guess.
fn new_session() -> Option<SessionId> {
    use std::fmt::Write as _;
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    let mut id = String::from("sess_");
    random.iter().try_for_each(|byte| write!(id, "{byte:02x}")).ok()?;
    SessionId::parse(&id).ok()
}
