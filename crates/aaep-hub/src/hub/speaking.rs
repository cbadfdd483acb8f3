//! Who may speak under a name, and what happens when a name changes hands (ruling 36).

use aaep::SessionId;
use aaep_engine::Input;

use super::holders::{NameClaim, NameUse};
use super::owner::Owner;
use super::refused::Refused;
use crate::access::Principal;
use crate::audit::Entry;
use crate::bounds::MAX_AGENT_ID_BYTES;
use crate::store::{Change, MAX_PAGE_ROWS, ReadError};

/// How many stored sessions are looked at after a start for who held which name.
const MAX_SESSIONS_LOOKED_AT: usize = 16_384;

impl Owner {
    /// A principal speaks under a name: from now on it holds it, unless somebody else does. `claim` is what it may do
    /// with a name that nobody holds any more.
    pub(super) fn speak_as(
        &mut self,
        who: &Principal,
        principal: u64,
        (agent_id, claim): (&str, NameClaim),
    ) -> Result<(), Refused> {
        if agent_id.len() > MAX_AGENT_ID_BYTES {
            return Err(Refused::NameTooLong);
        }
        // Two names that read the same must not belong to two principals (ruling 36).
        if !aaep_engine::is_normal_text(agent_id) {
            return Err(Refused::NameNotComposed);
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
        let is_in_use = |name: &str, holder: u64| {
            engine.speaks_as(holder, name) || posts.is_kept_by(name, holder, now.monotonic_us)
        };
        match self.holders.use_name((agent_id, claim), principal, now.unix_us, is_in_use) {
            NameUse::Held => Ok(()),
            NameUse::Taken => Err(Refused::NameTaken),
            NameUse::TooMany => Err(Refused::TooManyNames),
        }
    }

    /// If a name changed hands, everyone who hears the session is told, and the audit log says so.
    pub(super) fn tell_if_taken_over(&mut self, session_id: &SessionId, agent_id: &str, to: u64) {
        let Some(from) = self.holders.take_untold(agent_id) else { return };
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
        self.batch.changes.push(Change::Audit(entry));
        let words = format!(
            "Another program speaks as {agent_id} now: {to}. Before, it was {from}. \
             Rules and answers for {agent_id} may not be meant for it."
        );
        let input = Input::Announce { session_id: session_id.clone(), words };
        self.handle(input, None);
    }

    /// After a start: who held which name, as far as stored sessions say. Of sessions that run, all who speak in them.
    pub(super) fn recover_holders(&mut self) -> Result<(), ReadError> {
        let mut seen = 0;
        while seen < MAX_SESSIONS_LOOKED_AT {
            let page = self.reader.sessions(seen, MAX_PAGE_ROWS)?;
            seen += page.len();
            let is_last = page.is_empty();
            for session in page {
                let (whose, used) = (session.principal, session.last_unix_us);
                self.holders.recover(&self.agent_of(&session).agent_id, whose, used);
                for agent_id in self.engine.speakers(&session.session_id) {
                    self.holders.recover(agent_id, whose, used);
                }
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }
}
