//! Which principals may speak under a name, and what happens when a name changes hands (ruling 36).

use aaep::SessionId;
use aaep_engine::EngineInput;
use aaep_engine::PrincipalNumber;
use aaep_transport::local::HUB_NAME;

use super::holders::{NameClaim, NameUse};
use super::owner::EngineOwner;
use super::refused::Refused;
use crate::access::Principal;
use crate::audit::Entry;
use crate::bounds::MAX_AGENT_ID_BYTES;
use crate::store::StoreChange;

impl EngineOwner {
    /// Lets a principal speak under a name: from now on it holds the name, unless another principal does.
    /// `claim` says what it may do with a name that nobody holds any more.
    pub(super) fn speak_as(
        &mut self,
        who: &Principal,
        principal: PrincipalNumber,
        (agent_id, claim): (&str, NameClaim),
    ) -> Result<(), Refused> {
        if agent_id.len() > MAX_AGENT_ID_BYTES {
            return Err(Refused::NameTooLong);
        }
        // Two names that read the same must not belong to two principals (ruling 36).
        if !aaep_engine::is_normal_text(agent_id) {
            return Err(Refused::NameNotComposed);
        }
        if self.reads_like_the_hub(agent_id) {
            return Err(Refused::NameTaken);
        }
        if who.speaks_as.as_ref().is_some_and(|names| !names.contains(agent_id)) {
            return Err(Refused::NameNotYours);
        }
        if self.roster.is_bound_to_others(agent_id, &who.id) {
            return Err(Refused::NameTaken);
        }
        let is_bound = self.roster.is_bound_to(agent_id, &who.id);
        let claim = if is_bound { NameClaim::Bound } else { claim };
        let now = self.clock.now();
        let (engine, posts) = (&self.engine, &self.posts);
        let is_in_use = |name: &str, holder: PrincipalNumber| {
            engine.speaks_as(holder, name) || posts.is_present(name, holder, now.monotonic_us)
        };
        let used = self.holders.use_name((agent_id, claim), principal, now.unix_us, is_in_use);
        self.batch.changes.extend(self.holders.take_changes());
        match used {
            NameUse::Held => Ok(()),
            NameUse::Taken => Err(Refused::NameTaken),
            NameUse::TooMany => Err(Refused::TooManyNames),
        }
    }

    /// Whether a name reads like the hub's own: people would take the words of an agent for those of the hub.
    /// Only letters and digits count, small and capital ones alike.
    pub(super) fn reads_like_the_hub(&self, name: &str) -> bool {
        let bare = |text: &str| -> String {
            text.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
        };
        let name = bare(name);
        let own = self.engine.own_producer();
        let own = [Some(&own.agent_id), own.agent_name.as_ref()];
        own.into_iter().flatten().chain([&HUB_NAME.to_owned()]).any(|it| bare(it) == name)
    }

    /// If a name changed hands, announces that to all subscribers of the session and writes it to the audit
    /// log.
    pub(super) fn announce_takeover(
        &mut self,
        session_id: &SessionId,
        agent_id: &str,
        to: PrincipalNumber,
    ) {
        let Some(from) = self.holders.take_unannounced(agent_id) else { return };
        self.batch.changes.extend(self.holders.take_changes());
        let name = |number| self.principals.name(number).unwrap_or("unknown").to_owned();
        let (from, to) = (name(from), name(to));
        let entry = Entry {
            unix_us: self.clock.now().unix_us,
            kind: "name_taken_over",
            session_id: Some(session_id.clone()),
            reply_token: None,
            who: Some(to.clone()),
            outcome: format!("speaks under a name of {from}"),
            details: None,
        };
        self.batch.changes.push(StoreChange::Audit(entry));
        let words = format!(
            "Another program speaks as {agent_id} now: {to}. Before, it was {from}. \
             Rules and answers for {agent_id} may not be meant for it."
        );
        let input = EngineInput::Announce { session_id: session_id.clone(), words };
        self.handle(input, None);
    }
}
