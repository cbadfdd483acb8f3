//! What every program that stands between two others needs: lines that pass, a queue for the hub with which one thread
//! speaks, and the program that it started.
//!
//! Standard output carries nothing but the protocol of the two. Neither side ever waits for the hub, except for an
//! answer that it needs.

pub(crate) mod child;
pub(crate) mod hub;
mod inbox;
pub(crate) mod lines;
pub(crate) mod queue;

use aaep_bridge::{AskAnswer, ProxyAskNumber};

use queue::HubQueue;

/// An agent between two programs.
pub(crate) trait ProxiedAgent: Send + Sync + 'static {
    /// What waits for the hub.
    fn queue(&self) -> &HubQueue;

    /// The name under which the hub knows the agent.
    fn agent_id(&self) -> String;

    /// The person answered a question, or nobody did.
    fn answer(&self, number: ProxyAskNumber, answer: &AskAnswer);

    /// A question could not be put.
    fn not_asked(&self, number: ProxyAskNumber);

    /// Whether a question is given up at once while the hub is away, because somebody waits for it.
    fn asks_at_once(&self) -> bool;

    /// What to say when the hub is away.
    fn away_words(&self) -> &'static str;

    /// The person asks the agent to stop. Returns false if the session is not one of this agent.
    fn cancel(&self, session: &str) -> bool;
}
