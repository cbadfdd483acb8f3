//! How a listener gets a line to its producer.

use std::future::Future;

use aaep::handshake::SubscriptionAccepted;
use aaep::{EventId, SubscriptionId};
use aaep_transport::link::{Link, LinkEnd};

/// Where a listener left off, for wires that resume by themselves.
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

/// Gets lines to one producer, over whichever wire.
pub trait Dial: Send + 'static {
    /// A new line. [`LinkEnd::Refused`] says that trying again is of no use.
    fn dial(&mut self, from: WhereFrom) -> impl Future<Output = Result<Dialled, LinkEnd>> + Send;

    /// The line that was got last led nowhere: another wire may be tried next (B.7.2).
    fn led_nowhere(&mut self) {}

    /// Whether the one who granted the subscription is the one that was meant; if not, why.
    fn judge(&self, accepted: &SubscriptionAccepted) -> Result<(), String> {
        let _ = accepted;
        Ok(())
    }
}
