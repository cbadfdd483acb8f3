//! Several hubs at once: what each says stays its own, and which one speaks is told when that changes.

use std::time::Duration;

use aaep::SessionId;

use super::Announcer;
use super::io::{Decided, HubNumber, Input};
use super::queue::About;
use super::sessions::{SessionKey, told_name};
use crate::english::{self, listening};
use crate::utterance::Kind;
use crate::words::exact;

impl Announcer {
    /// The person listens to hubs of these names, as they are told. With one alone, hubs are never named.
    pub fn name_hubs(&mut self, names: &[String]) {
        self.hubs = names.iter().map(|name| told_name(name)).collect();
    }

    /// Takes in what comes from this hub, as [`Announcer::handle`] does. What it takes is of the first hub, unless
    /// another was heard last.
    pub fn handle_from(&mut self, now: Duration, hub: HubNumber, input: Input<'_>) -> Decided {
        self.hub = hub;
        self.handle(now, input)
    }

    /// The session of this id at the hub that is being heard.
    pub(super) fn key(&self, id: &SessionId) -> SessionKey {
        SessionKey { hub: self.hub, id: id.clone() }
    }

    pub(super) fn hub_name(&self, hub: HubNumber) -> &str {
        self.hubs.get(hub).map_or(english::A_HUB, String::as_str)
    }

    /// The line broke or is back. Attempts in between are not told.
    pub(super) fn line(&mut self, is_broken: bool) {
        let hub = self.hub;
        let is_news = if is_broken { self.broken.insert(hub) } else { self.broken.remove(&hub) };
        // Who was not told that it broke does not need to know that it is back.
        if !is_news || self.queue.remove(|it| it.about == About::Line(hub)) > 0 {
            return;
        }
        let to = if self.hubs.len() > 1 { self.hub_name(hub) } else { english::THE_AGENTS };
        let words = if is_broken { listening::line_broke(to) } else { listening::line_is_back(to) };
        self.say_ourselves(Kind::Notice, words, &About::Line(hub));
    }

    /// Something about the hub that is being heard.
    pub(super) fn hub_notice(&mut self, text: &str) {
        let said = exact(text);
        let said =
            if self.hubs.len() > 1 { format!("{}: {said}", self.hub_name(self.hub)) } else { said };
        self.say_ourselves(Kind::Notice, said, &About::Nothing);
    }

    /// The hub that has to be named before these words of this agent: another one spoke before, or the words or the
    /// name of the agent pretend to come from a hub.
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
