//! Who the subscriber is, and what it requests.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep::extension::{AskCapabilities, AskClock, CONTEXT, PREFIX};
use aaep::{Capabilities, LanguageTag, Uri, Verbosity, Version};
use aaep_engine::subscriber::SubscriberConfig;

const RIGHT: &str = "a constant of the right form";

/// The identity of a subscriber, and what it requests from a producer.
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
    /// The stable id of the subscriber.
    pub subscriber_id: String,
    /// Its name, as people see it.
    pub subscriber_name: Option<String>,
    /// Its version.
    pub subscriber_version: Option<String>,
    /// The capabilities that it requests (§5.3).
    pub capabilities: Capabilities,
    /// The token that identifies the subscriber to the producer.
    pub bearer: Option<String>,
    /// Whether the producer only sends events, without a handshake (level 1). Nothing can be answered then.
    pub without_handshake: bool,
    /// Whether a producer without a handshake still accepts answers, at `/messages` next to its `/events`.
    pub answers_without_handshake: bool,
    /// Whether the token is for hubs only: a producer without a manifest does not receive it.
    pub is_bearer_for_hubs: bool,
    /// The file that stores by which key each producer is known.
    pub pins: Option<PathBuf>,
    /// Whether plain HTTP may leave this machine. Anyone on the network can then read and change it.
    pub insecure_allow_plain_http: bool,
    /// The longest wait before the next attempt when the link is broken.
    pub longest_wait: Duration,
}

impl Wishes {
    /// A subscriber that can answer asks and requests all events.
    ///
    /// # Panics
    /// Never: the URI is a valid constant.
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

    /// Sets the subscriber's name, as people see it.
    pub fn name(mut self, name: &str) -> Self {
        self.subscriber_name = Some(name.to_owned());
        self
    }

    /// Sets the languages that the subscriber can announce, best first.
    pub fn languages(mut self, languages: Vec<LanguageTag>) -> Self {
        self.capabilities.languages = Some(languages);
        self
    }

    /// Sets how detailed the words should be.
    pub fn verbosity(mut self, verbosity: Verbosity) -> Self {
        self.capabilities.preferred_verbosity = Some(verbosity);
        self
    }

    /// Sets the most events per second; critical events do not count.
    pub fn max_events_per_second(mut self, most: u64) -> Self {
        self.capabilities.max_events_per_second = Some(most);
        self
    }

    /// The subscriber cannot answer: it receives asks, and others answer them.
    pub fn only_listening(mut self) -> Self {
        self.capabilities.supports_confirmation_reply = Some(false);
        self.capabilities.supports_clarification_reply = Some(false);
        self.capabilities.supported_conformance_levels = Some(vec![1]);
        self
    }

    /// Counts the time to answer from [`Ask::presented`](crate::Ask::presented), when the person has heard the
    /// ask, if the producer supports that.
    pub fn time_from_presented(self) -> Self {
        self.asking(|asking| asking.ask_clock = Some(AskClock::Presented))
    }

    /// Sets the token that identifies the subscriber to the producer.
    pub fn bearer(mut self, token: &str) -> Self {
        self.bearer = Some(token.to_owned());
        self
    }

    /// The producer only sends events, without a handshake (level 1).
    pub fn without_handshake(mut self) -> Self {
        self.without_handshake = true;
        self
    }

    /// The producer has no handshake, sends at `/events` and accepts answers at `/messages` (ruling 27).
    pub fn answering_without_handshake(mut self) -> Self {
        self.answers_without_handshake = true;
        self.without_handshake()
    }

    /// Requires a producer whose manifest is signed (§5.3.1.12).
    pub fn signed_only(mut self) -> Self {
        self.capabilities.accept_signed_manifests_only = Some(true);
        self
    }

    /// Stores in this file by which key each producer is known. The first key that signs a manifest is stored,
    /// and from then on no other key is trusted.
    pub fn pins(mut self, path: &Path) -> Self {
        self.pins = Some(path.to_owned());
        self
    }

    /// Lets plain HTTP leave this machine. Anyone on the network can then read and change it.
    pub fn insecure_allow_plain_http(mut self) -> Self {
        self.insecure_allow_plain_http = true;
        self
    }

    /// Limits the wait before the next attempt when the link is broken, for example for a producer on the same
    /// machine.
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

    /// Removes all extensions except our own. Returns whether there were any.
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
