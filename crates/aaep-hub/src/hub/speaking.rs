//! Which principals may speak under a name, under which name people hear them, and what happens when a name changes
//! hands (ruling 36).

use aaep::{Producer, SessionId};
use aaep_engine::EngineInput;
use aaep_engine::PrincipalNumber;

use super::holders::{NameClaim, NameUse, ReadName};
use super::owner::EngineOwner;
use super::refused::Refused;
use crate::access::Principal;
use crate::audit::Entry;
use crate::bounds::MAX_AGENT_ID_BYTES;
use crate::name_reading::{
    AgentReading, NameReading, is_deceptive_project, told_apart, told_principal,
};
use crate::store::StoreChange;

impl EngineOwner {
    /// Lets a principal speak under a name: from now on it holds the name, unless another principal holds one that
    /// reads like it. `claim` says what it may do with a name that nobody holds any more.
    pub(super) fn speak_as(
        &mut self,
        who: &Principal,
        principal: PrincipalNumber,
        (agent_id, claim): (&str, NameClaim),
    ) -> Result<(), Refused> {
        if agent_id.len() > MAX_AGENT_ID_BYTES {
            return Err(Refused::NameTooLong);
        }
        // Rules and lists name agents exactly.
        if !aaep_engine::is_normal_text(agent_id) {
            return Err(Refused::NameNotComposed);
        }
        let reading = self.readings.of(agent_id).whole;
        if self.own_readings.contains(&reading) {
            return Err(Refused::NameTaken);
        }
        if who.speaks_as.as_ref().is_some_and(|names| !names.contains(agent_id)) {
            return Err(Refused::NameNotYours);
        }
        if self.roster.is_bound_to_others(reading, &who.id) {
            return Err(Refused::NameTaken);
        }
        let is_bound = self.may_claim_as_bound(who, reading, self.holders.holder_of(reading));
        let claim = if is_bound { NameClaim::Bound } else { claim };
        let now = self.clock.now();
        let (engine, posts) = (&self.engine, &self.posts);
        let is_in_use = |name: &str, holder: PrincipalNumber| {
            engine.speaks_as(holder, name) || posts.is_present(name, holder, now.monotonic_us)
        };
        let name = ReadName { name: agent_id, reading };
        let used = self.holders.use_name((name, claim), principal, now.unix_us, is_in_use);
        self.batch.changes.extend(self.holders.take_changes());
        match used {
            NameUse::Held => Ok(()),
            NameUse::Taken => Err(Refused::NameTaken),
            NameUse::TooMany => Err(Refused::TooManyNames),
        }
    }

    /// Whether a name reads like the hub's own: people would take the words of an agent for those of the hub.
    pub(super) fn reads_like_the_hub(&mut self, name: &str) -> bool {
        let AgentReading { whole, told, .. } = self.readings.of(name);
        self.own_readings.contains(&whole) || self.own_readings.contains(&told)
    }

    /// The name under which people hear an agent, if it is not the one that the agent gives: the hub adds the
    /// principal to a name that reads like one of another principal. The first one keeps the plain name, whichever
    /// people hear it: what they may hear can change at any time. It also adds the principal if the project, which
    /// people hear after the name, could be taken for one.
    pub(super) fn told_name(
        &mut self,
        who: &Principal,
        principal: PrincipalNumber,
        (producer, project): (&Producer, Option<&str>),
    ) -> Option<String> {
        let given = producer.agent_name.as_deref().unwrap_or(&producer.agent_id);
        let reading = self.readings.of(given);
        let is_plain = !project.is_some_and(is_deceptive_project);
        if self.may_be_heard_as(who, principal, &reading) && is_plain {
            return None;
        }
        let words = who.in_words();
        let plain = told_principal(&words, None);
        let claim = (&*plain, NameReading::of(&plain), NameClaim::OwnOrNew);
        let is_its_own = self.use_spoken(principal, claim);
        let principal_name =
            if is_its_own { plain } else { told_principal(&words, Some(principal.0)) };
        Some(told_apart(given, &principal_name))
    }

    /// Every form in which people may have heard this name of a principal.
    pub(super) fn forms_of_name(
        who: &Principal,
        principal: PrincipalNumber,
        name: &str,
    ) -> [String; 2] {
        let words = who.in_words();
        [None, Some(principal.0)].map(|number| told_apart(name, &told_principal(&words, number)))
    }

    /// Whether people may hear a principal under a name as it is.
    fn may_be_heard_as(
        &mut self,
        who: &Principal,
        principal: PrincipalNumber,
        reading: &AgentReading,
    ) -> bool {
        let AgentReading { whole, told, told_name, is_deceptive } = reading;
        let readings = [*whole, *told];
        if *is_deceptive || readings.iter().any(|it| self.roster.is_bound_to_others(*it, &who.id)) {
            return false;
        }
        let now_unix_us = self.clock.now().unix_us;
        let is_id_of_another =
            || readings.iter().any(|it| self.holders.is_of_another(*it, principal, now_unix_us));
        if !self.spoken.is_of(*told, principal) && is_id_of_another() {
            return false;
        }
        // Marks in a name take the room of what is told, but not everyone hears or sees them.
        if whole != told && self.spoken.is_of_another(*whole, principal, now_unix_us) {
            return false;
        }
        let holder = self.spoken.holder_of(*told);
        let is_bound = readings.iter().any(|it| self.may_claim_as_bound(who, *it, holder));
        let claim = if is_bound { NameClaim::Bound } else { NameClaim::OrFree };
        self.use_spoken(principal, (told_name, *told, claim))
    }

    /// Whether a name is bound to this principal, and its holder has less right to it. If it is bound to both, the one
    /// that holds it keeps it: otherwise it would change hands with every event, and people would hear of nothing else.
    fn may_claim_as_bound(
        &self,
        who: &Principal,
        name: NameReading,
        holder: Option<PrincipalNumber>,
    ) -> bool {
        let holder = holder.and_then(|holder| self.principals.name(holder));
        let is_held_by_another =
            holder.is_some_and(|it| it != who.id && self.roster.is_bound_to(name, it));
        self.roster.is_bound_to(name, &who.id) && !is_held_by_another
    }

    /// Uses a name that people hear. Returns whether the principal holds it.
    fn use_spoken(
        &mut self,
        principal: PrincipalNumber,
        (name, reading, claim): (&str, NameReading, NameClaim),
    ) -> bool {
        let claim = (ReadName { name, reading }, claim);
        let now_unix_us = self.clock.now().unix_us;
        let used = self.spoken.use_name(claim, principal, now_unix_us, |_, _| false);
        self.batch.changes.extend(self.spoken.take_changes());
        used == NameUse::Held
    }

    /// If the name of an agent, or the one that people hear, changed hands, announces that to all subscribers of the
    /// session and writes it to the audit log.
    pub(super) fn announce_takeover(
        &mut self,
        session_id: &SessionId,
        producer: &Producer,
        to: PrincipalNumber,
    ) {
        let given = producer.agent_name.as_ref().unwrap_or(&producer.agent_id);
        let spoken = self.readings.of(given);
        let from_spoken = self.spoken.take_unannounced(spoken.told);
        let id = self.readings.of(&producer.agent_id).whole;
        let from = self.holders.take_unannounced(id);
        self.batch.changes.extend(self.holders.take_changes());
        self.batch.changes.extend(self.spoken.take_changes());
        // The same agent in other hands is announced once.
        let from_spoken = from_spoken.filter(|before| from != Some(*before));
        if let Some(from) = from {
            self.announce_holder(session_id, &producer.agent_id, (from, to));
        }
        if let Some(from) = from_spoken {
            self.announce_holder(session_id, &spoken.told_name, (from, to));
        }
    }

    fn announce_holder(
        &mut self,
        session_id: &SessionId,
        held: &str,
        (from, to): (PrincipalNumber, PrincipalNumber),
    ) {
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
            "Another program speaks as {held} now: {to}. Before, it was {from}. \
             Rules and answers for {held} may not be meant for it."
        );
        let input = EngineInput::Announce { session_id: session_id.clone(), words };
        self.handle(input, None);
    }
}
