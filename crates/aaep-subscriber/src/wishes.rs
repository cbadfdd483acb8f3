//! Who listens, and what it wants to hear.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep::extension::{AskCapabilities, AskClock, CONTEXT, PREFIX};
use aaep::{Capabilities, LanguageTag, Uri, Verbosity, Version};
use aaep_engine::subscriber::SubscriberConfig;

const RIGHT: &str = "a constant of the right form";

/// Who listens, and what it wants to hear.
///
/// ```
/// use aaep_subscriber::Wishes;
///
/// let wishes = Wishes::new("my-reader").name("My reader").max_events_per_second(5);
/// assert_eq!(wishes.capabilities.max_events_per_second, Some(5));
/// ```
#[derive(Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct Wishes {
    /// The stable name of the subscriber.
    pub subscriber_id: String,
    /// Its name as it is told to people.
    pub subscriber_name: Option<String>,
    /// Its version.
    pub subscriber_version: Option<String>,
    /// What it can take (§5.3).
    pub capabilities: Capabilities,
    /// Proves to the producer who listens.
    pub bearer: Option<String>,
    /// Whether the producer knows no handshake and just speaks (level 1). Nothing can be answered then.
    pub without_handshake: bool,
    /// Whether a producer without a handshake takes answers all the same, at `/messages` beside its `/events`.
    pub answers_without_handshake: bool,
    /// Whether the proof is for hubs alone: a producer without a manifest is not told it.
    pub is_bearer_for_hubs: bool,
    /// The file that says by which key each producer is known.
    pub pins: Option<PathBuf>,
    /// Whether plain HTTP may leave this machine, where anyone on the way can read and change it.
    pub insecure_allow_plain_http: bool,
    /// The longest wait before another attempt when the line is broken.
    pub longest_wait: Duration,
}

impl Wishes {
    /// A subscriber that can answer questions and wants to hear everything.
    ///
    /// # Panics
    /// Never: the URI is a constant of the right form.
    pub fn new(subscriber_id: &str) -> Self {
        let mut wishes = Wishes {
            subscriber_id: subscriber_id.to_owned(),
            subscriber_name: None,
            subscriber_version: None,
            capabilities: Capabilities::new(),
            bearer: None,
            without_handshake: false,
            answers_without_handshake: false,
            is_bearer_for_hubs: false,
            pins: None,
            insecure_allow_plain_http: false,
            longest_wait: crate::backoff::LONGEST_WAIT,
        };
        let capabilities = &mut wishes.capabilities;
        capabilities.supports_confirmation_reply = Some(true);
        capabilities.supports_clarification_reply = Some(true);
        capabilities.supported_conformance_levels = Some(vec![1, 2, 3]);
        capabilities.supported_extensions = Some(vec![Uri::parse(CONTEXT).expect(RIGHT)]);
        wishes.asking(|asking| asking.extend = Some(true))
    }

    /// The subscriber's name as it is told to people.
    pub fn name(mut self, name: &str) -> Self {
        self.subscriber_name = Some(name.to_owned());
        self
    }

    /// The languages that the subscriber can announce, best first.
    pub fn languages(mut self, languages: Vec<LanguageTag>) -> Self {
        self.capabilities.languages = Some(languages);
        self
    }

    /// How detailed the words should be.
    pub fn verbosity(mut self, verbosity: Verbosity) -> Self {
        self.capabilities.preferred_verbosity = Some(verbosity);
        self
    }

    /// The most events per second, critical ones aside.
    pub fn max_events_per_second(mut self, most: u64) -> Self {
        self.capabilities.max_events_per_second = Some(most);
        self
    }

    /// The subscriber cannot answer: it hears that something is asked, and others answer.
    pub fn only_listening(mut self) -> Self {
        self.capabilities.supports_confirmation_reply = Some(false);
        self.capabilities.supports_clarification_reply = Some(false);
        self.capabilities.supported_conformance_levels = Some(vec![1]);
        self
    }

    /// The time to answer is counted from when [`Ask::presented`](crate::Ask::presented) says that the
    /// person has heard the question, where the producer can do that.
    pub fn time_from_presented(self) -> Self {
        self.asking(|asking| asking.ask_clock = Some(AskClock::Presented))
    }

    /// Proves to the producer who listens.
    pub fn bearer(mut self, token: &str) -> Self {
        self.bearer = Some(token.to_owned());
        self
    }

    /// The producer knows no handshake and just speaks (level 1).
    pub fn without_handshake(mut self) -> Self {
        self.without_handshake = true;
        self
    }

    /// The producer knows no handshake, speaks at `/events` and takes answers at `/messages` (ruling 27).
    pub fn answering_without_handshake(mut self) -> Self {
        self.answers_without_handshake = true;
        self.without_handshake()
    }

    /// Only a producer whose manifest is signed will do (§5.3.1.12).
    pub fn signed_only(mut self) -> Self {
        self.capabilities.accept_signed_manifests_only = Some(true);
        self
    }

    /// Keeps in this file by which key each producer is known. The first key that signs a manifest is
    /// remembered, and from then on no other is believed.
    pub fn pins(mut self, path: &Path) -> Self {
        self.pins = Some(path.to_owned());
        self
    }

    /// Lets plain HTTP leave this machine, where anyone on the way can read and change it.
    pub fn insecure_allow_plain_http(mut self) -> Self {
        self.insecure_allow_plain_http = true;
        self
    }

    /// Waits at most so long before another attempt when the line is broken, such as for a producer on the
    /// same machine.
    pub fn longest_wait(mut self, wait: Duration) -> Self {
        self.longest_wait = wait;
        self
    }

    fn asking(mut self, change: impl FnOnce(&mut AskCapabilities)) -> Self {
        let mut asking = AskCapabilities::of(&self.capabilities);
        change(&mut asking);
        let asking = serde_json::to_value(asking).unwrap_or_default();
        self.capabilities.other.insert(PREFIX.to_owned(), asking);
        self
    }

    /// Leaves out all extensions but our own; whether there were any.
    pub(crate) fn leave_out_extensions(&mut self) -> bool {
        let before = self.capabilities.clone();
        self.capabilities.other.retain(|prefix, _| prefix == PREFIX);
        if let Some(extensions) = &mut self.capabilities.supported_extensions {
            extensions.retain(|extension| extension.as_str() == CONTEXT);
        }
        self.capabilities != before
    }

    pub(crate) fn config(&self) -> SubscriberConfig {
        SubscriberConfig {
            subscriber_id: self.subscriber_id.clone(),
            subscriber_name: self.subscriber_name.clone(),
            subscriber_version: self.subscriber_version.clone(),
            version: Version::parse("1.0.0").expect(RIGHT),
        }
    }
}

impl fmt::Debug for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wishes")
            .field("subscriber_id", &self.subscriber_id)
            .field("capabilities", &self.capabilities)
            .field("has_bearer", &self.bearer.is_some())
            .field("without_handshake", &self.without_handshake)
            .finish_non_exhaustive()
    }
}
