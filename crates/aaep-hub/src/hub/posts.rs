//! Instructions from people to agents.
//!
//! An agent that declares what it accepts has a post: instructions stay there until the agent takes them, over
//! its socket or by polling. A post is forgotten when its agent has been away for a while. Nothing in it is
//! stored: an instruction is meant for an agent that is present, and if there is none, the sender is told.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use aaep::extension::{Accepts, Delivery};
use aaep::{Message, Producer, SessionId};
use aaep_engine::{AgentTags, Engine, PrincipalNumber};
use aaep_transport::wire::ConnectionKey;
use serde::Serialize;
use tokio::sync::oneshot;

use super::entry::shortened;
use super::holders::NameClaim;
use super::owner::EngineOwner;
use super::subscribers::MessageOutcome;
use crate::access::{Principal, Scope};
use crate::audit::Entry;
use crate::bounds::MAX_AGENT_ID_BYTES;
use crate::store::StoreChange;

/// How long an agent may be away before its post is forgotten.
const POST_US: u64 = 90_000_000;

/// How many agents may have a post.
const MAX_POSTS: usize = 1024;

/// How many agents of one principal may have a post.
const MAX_POSTS_PER_PRINCIPAL: usize = MAX_POSTS / 8;

/// How many instructions one post holds. Beyond that, it only takes cancellations.
const MAX_INSTRUCTIONS: usize = 64;

/// How many of these may come from one principal.
const MAX_INSTRUCTIONS_EACH: usize = MAX_INSTRUCTIONS / 4;

/// The most bytes for the texts of all instructions in one post, and for those of one principal.
const MAX_POST_BYTES: usize = 512 * 1024;
const MAX_POST_BYTES_EACH: usize = MAX_POST_BYTES / 4;

/// How many events of a session are searched for the id that its agent gave it.
const MAX_LOOKED_BACK: usize = 16;

/// The posts of all agents, by name.
#[derive(Default)]
pub(super) struct AgentPosts(BTreeMap<String, AgentPost>);

impl AgentPosts {
    /// Whether this principal is present as the agent with this name.
    pub(super) fn is_present(
        &self,
        agent_id: &str,
        principal: PrincipalNumber,
        now_us: u64,
    ) -> bool {
        let post = self.0.get(agent_id).filter(|post| post.is_alive(now_us));
        post.is_some_and(|post| post.principal == principal)
    }
}

/// The instructions for one agent.
struct AgentPost {
    /// The principal that speaks for the agent.
    principal: PrincipalNumber,
    /// Decides which principals may hear and instruct the agent.
    tags: AgentTags,
    accepts: Vec<Accepts>,
    /// The name that people hear, if it is not the one that the agent gave.
    told_name: Option<String>,
    /// The number of the last instruction.
    last: u64,
    waiting: VecDeque<WaitingInstruction>,
    /// The agent's socket, if it has one.
    connection: Option<ConnectionKey>,
    /// Wakes an agent that polls for instructions.
    poller: Option<oneshot::Sender<()>>,
    seen_us: u64,
}

/// An instruction that the agent has not taken yet.
struct WaitingInstruction {
    /// The id of the principal that gave it.
    from: String,
    instruction: AgentInstruction,
}

/// An instruction from a person to an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentInstruction {
    /// Its number in the agent's post, larger than that of the previous one.
    pub number: u64,
    /// `agentvoice:agent.prompt`, `agentvoice:session.cancel` or `agentvoice:session.steer`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The session that is meant; a new one for a prompt.
    pub session_id: SessionId,
    /// The id that the agent gave the same session, if that has another form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_session_id: Option<String>,
    /// The person's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The reason, for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An agent that accepts instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agent {
    /// Its name.
    pub agent_id: String,
    /// The name that people hear, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Which instructions it accepts.
    pub accepts: Vec<Accepts>,
    /// Its running sessions.
    pub sessions: Vec<SessionId>,
}

/// Why no agent was instructed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotInstructed {
    /// The sender may not instruct agents. That takes the scope `reply`.
    NotAllowed,
    /// No agent is present that accepts this instruction.
    NoAgent,
    /// The agent has not taken its earlier instructions yet.
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

impl AgentPosts {
    /// How many posts a principal has.
    fn of(&self, principal: PrincipalNumber) -> usize {
        self.0.values().filter(|post| post.principal == principal).count()
    }

    /// Makes room for another post of a principal, if it is within its share: of the principal with the most
    /// posts, the agent that was seen the longest ago gives way. Returns whether there is room.
    fn make_room(&mut self, principal: PrincipalNumber) -> bool {
        let own = self.of(principal);
        if own >= MAX_POSTS_PER_PRINCIPAL {
            return false;
        }
        if self.0.len() < MAX_POSTS {
            return true;
        }
        let mut counts: BTreeMap<PrincipalNumber, usize> = BTreeMap::new();
        for post in self.0.values() {
            *counts.entry(post.principal).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some((most, _)) = most.filter(|(_, count)| *count > own + 1) else { return false };
        let away = self.0.iter().filter(|(_, it)| it.principal == most && it.connection.is_none());
        let oldest = away.min_by_key(|(_, post)| post.seen_us).map(|(name, _)| name.clone());
        oldest.and_then(|name| self.0.remove(&name)).is_some()
    }
}

impl EngineOwner {
    /// Declares which instructions an agent accepts. Returns whether the principal may speak under that name.
    pub(super) fn declare(
        &mut self,
        who: &Principal,
        principal: PrincipalNumber,
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
        let is_new = self.posts.0.get(agent_id).is_none_or(|post| post.principal != principal);
        // A name costs nothing until there is room for its agent.
        if is_new && !self.posts.make_room(principal) {
            return false;
        }
        // No session announces this, so nobody would hear that a name changed hands.
        if self.speak_as(who, principal, (agent_id, NameClaim::OwnOrNew)).is_err() {
            return false;
        }
        let told_name = self.told_name(who, principal, (&Producer::new(agent_id), None));
        if let Some(post) = self.posts.0.get_mut(agent_id).filter(|it| it.principal == principal) {
            post.accepts = accepts;
            post.told_name = told_name;
            post.seen_us = now_us;
            post.connection = connection.or(post.connection);
        } else {
            let waiting = VecDeque::new();
            let (last, poller, seen_us) = (0, None, now_us);
            let tags = who.agent_tags(agent_id);
            let post = AgentPost {
                principal,
                tags,
                accepts,
                told_name,
                last,
                waiting,
                connection,
                poller,
                seen_us,
            };
            self.posts.0.insert(agent_id.to_owned(), post);
        }
        if let Some(connection) = connection {
            self.deliver_waiting(agent_id, connection);
        }
        true
    }

    /// Sends the waiting instructions to the agent's new socket.
    fn deliver_waiting(&mut self, agent_id: &str, connection: ConnectionKey) {
        let waiting = self.posts.0.get_mut(agent_id).map(|post| std::mem::take(&mut post.waiting));
        for waiting in waiting.into_iter().flatten() {
            self.tell_agent(connection, &waiting.instruction);
        }
    }

    /// Notes that an agent's socket is gone.
    pub(super) fn agent_gone(&mut self, connection: ConnectionKey) {
        let now_us = self.clock.now().monotonic_us;
        for post in self.posts.0.values_mut() {
            if post.connection == Some(connection) {
                post.connection = None;
                post.seen_us = now_us;
            }
        }
    }

    /// The agents that this principal may hear and instruct.
    pub(super) fn instructable_agents(&self, principal: &Principal) -> Vec<Agent> {
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
            let agent_name = agent_name.or_else(|| post.told_name.clone());
            let (agent_id, accepts) = (agent_id.clone(), post.accepts.clone());
            Agent { agent_id, agent_name, accepts, sessions }
        });
        agents.collect()
    }

    /// Returns the instructions after a number. If there are none, returns a receiver that wakes when one
    /// arrives.
    pub(super) fn inbox(
        &mut self,
        principal: PrincipalNumber,
        agent_id: &str,
        after: u64,
    ) -> Option<(Vec<AgentInstruction>, Option<oneshot::Receiver<()>>)> {
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

    /// Handles a subscriber's instruction to an agent.
    pub(super) fn instruct(
        &mut self,
        principal: &Principal,
        number: PrincipalNumber,
        message: Message,
    ) -> MessageOutcome {
        let (subscription, agent_id, wish) = match message {
            Message::AgentPrompt(it) => {
                (it.subscription_id, it.agent_id, NewInstruction::Prompt { text: it.text })
            }
            Message::SessionCancel(it) => {
                let reason = it.reason.map(|reason| reason.to_string());
                (
                    it.subscription_id,
                    None,
                    NewInstruction::Cancel { session_id: it.session_id, reason },
                )
            }
            Message::SessionSteer(it) => {
                let wish = NewInstruction::Steer { session_id: it.session_id, text: it.text };
                (it.subscription_id, None, wish)
            }
            _ => return MessageOutcome::NotForHere,
        };
        match self.engine.subscription(&subscription) {
            Some((_, whose)) if whose == number => {}
            _ => return MessageOutcome::NoSuchSubscription,
        }
        if principal.is_local_program() && !self.is_allowed_program(number) {
            return MessageOutcome::NotInstructed(NotInstructed::NotAllowed);
        }
        match self.instruct_agent(principal, agent_id.as_deref(), wish) {
            Ok(session_id) => MessageOutcome::Instructed(session_id),
            Err(why) => MessageOutcome::NotInstructed(why),
        }
    }

    /// Puts an instruction into the post of the agent that is meant.
    pub(super) fn instruct_agent(
        &mut self,
        principal: &Principal,
        agent_id: Option<&str>,
        wish: NewInstruction,
    ) -> Result<SessionId, NotInstructed> {
        if !principal.scopes.has(Scope::Reply) {
            return Err(NotInstructed::NotAllowed);
        }
        let now_us = self.clock.now().monotonic_us;
        // The agents that are meant: those of a session, the one that was named, or any.
        let speaks_in = |session_id: &SessionId, name: &str, post: &AgentPost| {
            !self.engine.has_ended(session_id)
                && self.engine.principal_of(session_id) == Some(post.principal)
                && self.engine.speakers(session_id).any(|it| it == name)
        };
        let is_meant = |name: &str, post: &AgentPost| match &wish {
            NewInstruction::Prompt { .. } => agent_id.is_none_or(|meant| meant == name),
            NewInstruction::Cancel { session_id, .. }
            | NewInstruction::Steer { session_id, .. } => speaks_in(session_id, name, post),
        };
        let hearing = principal.hearing();
        let accepts = wish.accepts();
        let fits = |name: &str, post: &AgentPost| {
            post.is_alive(now_us)
                && post.accepts.contains(&accepts)
                && is_meant(name, post)
                && hearing.includes(&post.tags)
        };
        // Of several matching agents, choose the one that was seen last.
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
        self.batch.changes.push(StoreChange::Audit(entry));
        if let Some(connection) = post.connection {
            self.tell_agent(connection, &instruction);
            return Ok(session_id);
        }
        if instruction.kind == CANCEL {
            // One cancellation is enough, so there are never more of them than sessions.
            post.waiting.retain(|waiting| !waiting.instruction.cancels(&session_id));
        }
        post.waiting.push_back(WaitingInstruction { from: principal.id.clone(), instruction });
        if let Some(poller) = post.poller.take() {
            self.answer(poller, ());
        }
        Ok(session_id)
    }
}

impl AgentPost {
    fn is_alive(&self, now_us: u64) -> bool {
        self.connection.is_some() || self.seen_us.saturating_add(POST_US) > now_us
    }

    /// Whether the post has room for one more instruction of this principal. A cancellation is never refused.
    fn has_room(&self, principal: &str, wish: &NewInstruction) -> bool {
        let text = match wish {
            NewInstruction::Cancel { .. } => return true,
            NewInstruction::Prompt { text } | NewInstruction::Steer { text, .. } => text,
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

/// The kind of an instruction to continue in another way.
const STEER: &str = "agentvoice:session.steer";

impl AgentInstruction {
    fn cancels(&self, session_id: &SessionId) -> bool {
        self.kind == CANCEL && self.session_id == *session_id
    }
}

/// An instruction before it has a number.
pub(super) enum NewInstruction {
    Prompt { text: String },
    Cancel { session_id: SessionId, reason: Option<String> },
    Steer { session_id: SessionId, text: String },
}

impl NewInstruction {
    fn accepts(&self) -> Accepts {
        match self {
            NewInstruction::Prompt { .. } => Accepts::Prompt,
            NewInstruction::Cancel { .. } => Accepts::Cancel,
            NewInstruction::Steer { .. } => Accepts::Steer,
        }
    }

    /// Builds the instruction for the agent. Returns `None` only if the system has no randomness for a new
    /// session id.
    fn instruction(self, number: u64) -> Option<AgentInstruction> {
        Some(match self {
            NewInstruction::Prompt { text } => AgentInstruction {
                number,
                kind: "agentvoice:agent.prompt",
                session_id: new_session()?,
                original_session_id: None,
                text: Some(text),
                reason: None,
            },
            NewInstruction::Cancel { session_id, reason } => {
                let original_session_id = None;
                AgentInstruction {
                    number,
                    kind: CANCEL,
                    session_id,
                    original_session_id,
                    text: None,
                    reason,
                }
            }
            NewInstruction::Steer { session_id, text } => AgentInstruction {
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

/// The audit entry for an instruction. It omits the words of a prompt: the session may never begin, and then
/// nobody could delete the words with it.
fn audit_entry(unix_us: i64, who: &str, agent_id: &str, instruction: &AgentInstruction) -> Entry {
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

/// The id that a session's agent gave it, if that has another form.
fn original_session(engine: &Engine, session_id: &SessionId) -> Option<String> {
    let newest = engine.newest_events(session_id).take(MAX_LOOKED_BACK);
    newest.filter_map(Delivery::of).find_map(|said| said.original?.session_id)
}

/// A session id that nobody can guess.
fn new_session() -> Option<SessionId> {
    use std::fmt::Write as _;
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    let mut id = String::from("sess_");
    random.iter().try_for_each(|byte| write!(id, "{byte:02x}")).ok()?;
    SessionId::parse(&id).ok()
}
