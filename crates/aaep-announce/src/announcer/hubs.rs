//! Several hubs: the sessions of each stay separate, and a hub is named whenever another one speaks.

use std::time::Duration;

use aaep::SessionId;

use super::Announcer;
use super::io::{AnnouncerInput, Decided, HubNumber};
use super::queue::UtteranceTopic;
use super::sessions::{HubSessionKey, told_name};
use crate::english::{self, listening};
use crate::utterance::UtteranceKind;
use crate::words::exact;

impl Announcer {
    /// Sets the names of the hubs. With a single hub, hubs are never named.
    pub fn name_hubs(&mut self, names: &[String]) {
        self.hubs = names.iter().map(|name| told_name(name)).collect();
    }

    /// Like [`Announcer::handle`], for input from this hub. The plain `handle` applies to the last hub given here, at
    /// first to hub 0.
    pub fn handle_from(
        &mut self,
        now: Duration,
        hub: HubNumber,
        input: AnnouncerInput<'_>,
    ) -> Decided {
        self.hub = hub;
        self.handle(now, input)
    }

    /// The key of a session at the current hub.
    pub(super) fn key(&self, id: &SessionId) -> HubSessionKey {
        HubSessionKey { hub: self.hub, id: id.clone() }
    }

    pub(super) fn hub_name(&self, hub: HubNumber) -> &str {
        self.hubs.get(hub).map_or(english::A_HUB, String::as_str)
    }

    /// Announces that the connection broke or is back. Attempts in between are not announced.
    pub(super) fn connection_changed(&mut self, is_broken: bool) {
        let hub = self.hub;
        let is_news = if is_broken { self.broken.insert(hub) } else { self.broken.remove(&hub) };
        // If the person has not heard yet that it broke, they need not hear that it is back.
        if !is_news || self.queue.remove(|it| it.about == UtteranceTopic::Line(hub)) > 0 {
            return;
        }
        let to = if self.hubs.len() > 1 { self.hub_name(hub) } else { english::THE_AGENTS };
        let words = if is_broken { listening::line_broke(to) } else { listening::line_is_back(to) };
        self.say_ourselves(UtteranceKind::Notice, words, &UtteranceTopic::Line(hub));
    }

    /// Announces something about the current hub.
    pub(super) fn hub_notice(&mut self, text: &str) {
        let said = exact(text);
        let said =
            if self.hubs.len() > 1 { format!("{}: {said}", self.hub_name(self.hub)) } else { said };
        self.say_ourselves(UtteranceKind::Notice, said, &UtteranceTopic::Nothing);
    }

    /// The hub to name before these words of this agent: if another hub spoke before, or if the words or the agent's
    /// name pretend to come from a hub.
    pub(super) fn hub_to_name(&self, hub: HubNumber, label: &str, words: &str) -> Option<&str> {
        let is_wanted = self.named_hub != Some(hub)
            || self.begins_like_a_hub(label)
            || self.begins_like_a_hub(words);
        (self.hubs.len() > 1 && is_wanted).then(|| self.hub_name(hub))
    }

    fn begins_like_a_hub(&self, text: &str) -> bool {
        let text = text.trim_start().to_lowercase();
        let rest = text.strip_prefix(english::AT_IN_SMALL);
        rest.is_some_and(|rest| self.hubs.iter().any(|it| rest.starts_with(&it.to_lowercase())))
    }
}
