//! How a subscriber opens a link to its producer.

use std::future::Future;

use aaep::handshake::SubscriptionAccepted;
use aaep::{EventId, SubscriptionId};
use aaep_transport::link::{DialError, DialOptions, Link, LinkResume, Target, dial};

use crate::trust::ProducerTrust;
use crate::wishes::Wishes;

/// Where a subscriber stopped, for wires that resume by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhereFrom {
    /// The current subscription, if it is still valid as far as the subscriber knows.
    pub subscription_id: Option<SubscriptionId>,
    /// The last event that the subscriber received.
    pub last_event_id: Option<EventId>,
}

/// An open link.
#[derive(Debug)]
pub struct Dialled {
    /// The link.
    pub link: Link,
    /// Whether the subscription continues by itself on this link, so that no new one must be requested.
    pub is_resumed: bool,
}

/// Why no link could be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialFailure {
    /// The reason, in a sentence for people.
    pub why: String,
    /// Whether another attempt would fail in the same way.
    pub is_final: bool,
}

/// Opens links to one producer, over any wire.
pub trait Dial: Send + 'static {
    /// Opens a new link.
    fn dial(
        &mut self,
        from: WhereFrom,
    ) -> impl Future<Output = Result<Dialled, DialFailure>> + Send;

    /// Reports that the last link failed, so that another wire can be tried next (B.7.2). Returns whether there
    /// is a wire that was not tried since a link last held.
    fn led_nowhere(&mut self) -> bool {
        false
    }

    /// Reports that the subscription holds on the last link.
    fn holds(&mut self) {}

    /// Checks that the producer that granted the subscription is the intended one; if not, says why.
    fn judge(&self, accepted: &SubscriptionAccepted) -> Result<(), String> {
        let _ = accepted;
        Ok(())
    }
}

/// Opens links by address, the preferred wire first.
pub(crate) struct AddressDialler {
    targets: Vec<Target>,
    /// The index of the target to try first.
    first: usize,
    /// The number of targets that failed in a row.
    nowhere: usize,
    options: DialOptions,
    trust: Option<ProducerTrust>,
}

impl AddressDialler {
    pub(crate) fn new(targets: Vec<Target>, wishes: &Wishes, trust: Option<ProducerTrust>) -> Self {
        let options = DialOptions {
            bearer: wishes.bearer.clone(),
            insecure_allow_plain_http: wishes.insecure_allow_plain_http,
            without_handshake: wishes.without_handshake,
            ..DialOptions::default()
        };
        AddressDialler { targets, first: 0, nowhere: 0, options, trust }
    }

    async fn dial_one(&mut self, target: &Target, from: &WhereFrom) -> Result<Dialled, DialError> {
        // Server-sent events resume the subscription; on the other wires a new one is requested.
        let may_resume = matches!(target, Target::Sse(_))
            && (from.subscription_id.is_some() || self.options.without_handshake);
        self.options.resume = may_resume.then(|| LinkResume {
            subscription_id: from.subscription_id.as_ref().map(ToString::to_string),
            last_event_id: from.last_event_id.as_ref().map(ToString::to_string),
        });
        match dial(target, &self.options).await {
            Ok(link) => Ok(Dialled { link, is_resumed: may_resume }),
            Err(DialError::NoSuchSubscription) if may_resume => {
                self.options.resume = None;
                let link = dial(target, &self.options).await?;
                Ok(Dialled { link, is_resumed: false })
            }
            Err(error) => Err(error),
        }
    }
}

impl Dial for AddressDialler {
    async fn dial(&mut self, from: WhereFrom) -> Result<Dialled, DialFailure> {
        let mut failed: Option<DialError> = None;
        for step in 0..self.targets.len() {
            let at = (self.first + step) % self.targets.len();
            let Some(target) = self.targets.get(at).cloned() else { continue };
            match self.dial_one(&target, &from).await {
                Ok(dialled) => {
                    self.first = at;
                    return Ok(dialled);
                }
                Err(error) => failed = Some(failed.map_or(error, |first| first)),
            }
        }
        let error = failed.unwrap_or(DialError::TooSlow);
        let is_final = matches!(error, DialError::Refused { .. });
        Err(DialFailure { why: format!("{}.", error.to_string().trim_end_matches('.')), is_final })
    }

    fn led_nowhere(&mut self) -> bool {
        self.first = (self.first + 1) % self.targets.len().max(1);
        self.nowhere = self.nowhere.saturating_add(1);
        self.nowhere < self.targets.len()
    }

    fn holds(&mut self) {
        self.nowhere = 0;
    }

    fn judge(&self, accepted: &SubscriptionAccepted) -> Result<(), String> {
        self.trust.as_ref().map_or(Ok(()), |trust| trust.judge(accepted))
    }
}
