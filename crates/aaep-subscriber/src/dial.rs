//! How a subscriber gets a line to its producer.

use std::future::Future;

use aaep::handshake::SubscriptionAccepted;
use aaep::{EventId, SubscriptionId};
use aaep_transport::link::{DialError, DialOptions, Link, Resume, Target, dial};

use crate::trust::Trust;
use crate::wishes::Wishes;

/// Where a subscriber left off, for wires that resume by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WhereFrom {
    /// The subscription that it has, if it still holds as far as is known.
    pub subscription_id: Option<SubscriptionId>,
    /// The last event that it heard.
    pub last_event_id: Option<EventId>,
}

/// A line that was got.
#[derive(Debug)]
pub struct Dialled {
    /// The line.
    pub link: Link,
    /// Whether the subscription goes on by itself on it, so that none is to be asked for.
    pub is_resumed: bool,
}

/// Why there is no line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLine {
    /// Why, in a sentence for people.
    pub why: String,
    /// Whether trying again is of no use.
    pub is_final: bool,
}

/// Gets lines to one producer, over whichever wire.
pub trait Dial: Send + 'static {
    /// A new line.
    fn dial(&mut self, from: WhereFrom) -> impl Future<Output = Result<Dialled, NoLine>> + Send;

    /// The line that was got last led nowhere: another wire may be tried next (B.7.2). Whether there is one
    /// that was not tried since a line last held.
    fn led_nowhere(&mut self) -> bool {
        false
    }

    /// The line that was got last holds.
    fn holds(&mut self) {}

    /// Whether the one who granted the subscription is the one that was meant; if not, why.
    fn judge(&self, accepted: &SubscriptionAccepted) -> Result<(), String> {
        let _ = accepted;
        Ok(())
    }
}

/// Gets lines by addresses, the best wire first.
pub(crate) struct ByAddress {
    targets: Vec<Target>,
    /// The target that is tried first.
    first: usize,
    /// How many led nowhere in a row.
    nowhere: usize,
    options: DialOptions,
    trust: Option<Trust>,
}

impl ByAddress {
    pub(crate) fn new(targets: Vec<Target>, wishes: &Wishes, trust: Option<Trust>) -> Self {
        let options = DialOptions {
            bearer: wishes.bearer.clone(),
            insecure_allow_plain_http: wishes.insecure_allow_plain_http,
            without_handshake: wishes.without_handshake,
            ..DialOptions::default()
        };
        ByAddress { targets, first: 0, nowhere: 0, options, trust }
    }

    async fn dial_one(&mut self, target: &Target, from: &WhereFrom) -> Result<Dialled, DialError> {
        // Server-sent events go on with the subscription; the other wires are asked for a new one.
        let may_resume = matches!(target, Target::Sse(_))
            && (from.subscription_id.is_some() || self.options.without_handshake);
        self.options.resume = may_resume.then(|| Resume {
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

impl Dial for ByAddress {
    async fn dial(&mut self, from: WhereFrom) -> Result<Dialled, NoLine> {
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
        Err(NoLine { why: format!("{}.", error.to_string().trim_end_matches('.')), is_final })
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
