//! The link to the producer: how it is opened, breaks, and is opened again.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use aaep::SubscriptionId;
use aaep::extension::Resume;
use aaep::handshake::{ReasonCode, SubscriptionRejected};
use aaep_transport::link::{Link, LinkEnd, LinkReceiver, LinkSender};
use tokio::time::{Instant, timeout};

use super::{HANDSHAKE_TIMEOUT, SETTLED_AFTER, SubscriptionTask};
use crate::backoff::random;
use crate::dial::{Dial, DialFailure, Dialled, WhereFrom};
use crate::error::ConnectError;
use crate::news::{Ended, News};

/// How long opening a link may take, all wires together.
const DIAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The codes of B.2.6 with which a producer ends a subscription for good.
const FOR_GOOD: &[u16] = &[4000, 4002, 4003, 4004, 4005];

/// The subscription id in answers to a producer that granted none. A producer without a handshake ignores it, but
/// the specification requires one in every answer (§6.3.1).
fn made_up_id() -> SubscriptionId {
    SubscriptionId::parse("sub_none").expect("a constant of the right form")
}

type DialAttempt<D> = Pin<Box<dyn Future<Output = (D, Result<Dialled, DialFailure>)> + Send>>;

/// The state of the link to the producer.
pub(super) enum LinkState<D> {
    /// There is no link; the next attempt starts at `until`.
    Down { dial: D, until: Instant },
    /// An attempt is in progress.
    Dialling(DialAttempt<D>),
    /// There is a link.
    Up(LiveLink<D>),
    /// There will be no link again.
    Nowhere,
}

/// An open link.
pub(super) struct LiveLink<D> {
    pub(super) dial: D,
    pub(super) sender: LinkSender,
    pub(super) receiver: LinkReceiver,
    pub(super) standing: LinkStanding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkStanding {
    /// The producer has not answered the request yet.
    Asked { until: Instant },
    /// The subscription holds on this link.
    Holds { since: Instant },
}

impl<D> LinkState<D> {
    /// When this state must be looked at again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            LinkState::Down { until, .. }
            | LinkState::Up(LiveLink { standing: LinkStanding::Asked { until }, .. }) => {
                Some(*until)
            }
            _ => None,
        }
    }

    /// Whether the producer has yet to answer on this link.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self, LinkState::Up(LiveLink { standing: LinkStanding::Asked { .. }, .. }))
    }

    /// Whether a subscription holds on this link.
    pub(super) fn holds(&self) -> bool {
        matches!(self, LinkState::Up(LiveLink { standing: LinkStanding::Holds { .. }, .. }))
    }
}

impl<D: Dial> SubscriptionTask<D> {
    /// Does what is due about the link.
    pub(super) fn link_due(&mut self, now: Instant) -> Result<(), Ended> {
        if self.link.deadline().is_none_or(|at| now < at) {
            return Ok(());
        }
        match std::mem::replace(&mut self.link, LinkState::Nowhere) {
            LinkState::Down { mut dial, .. } => {
                let from = WhereFrom {
                    subscription_id: self
                        .rules
                        .subscription_id()
                        .filter(|_| !self.is_lost)
                        .cloned(),
                    last_event_id: self.rules.last_event_id().cloned(),
                };
                self.link = LinkState::Dialling(Box::pin(async move {
                    let dialled = timeout(DIAL_TIMEOUT, dial.dial(from)).await;
                    let why = "The producer cannot be reached in time.".to_owned();
                    let late = || Err(DialFailure { why, is_final: false });
                    (dial, dialled.unwrap_or_else(|_| late()))
                }));
                Ok(())
            }
            link => {
                self.link = link;
                if self.try_another_wire() {
                    return Ok(());
                }
                self.fail_first_connection(ConnectError::NoAnswer)?;
                self.link_down("The producer did not answer the request.", Duration::ZERO);
                Ok(())
            }
        }
    }

    /// Handles the end of an attempt.
    pub(super) fn dialled(
        &mut self,
        (dial, dialled): (D, Result<Dialled, DialFailure>),
    ) -> Result<(), Ended> {
        let Dialled { link: Link { sender, receiver }, is_resumed } = match dialled {
            Ok(dialled) => dialled,
            Err(DialFailure { why, is_final }) => {
                self.link = LinkState::Down { dial, until: Instant::now() };
                self.fail_first_connection(ConnectError::NoLine(why.clone()))?;
                if is_final {
                    return Err(Ended::Refused(why));
                }
                self.link_down(&why, Duration::ZERO);
                return Ok(());
            }
        };
        let now = Instant::now();
        let standing = LinkStanding::Asked { until: now + HANDSHAKE_TIMEOUT };
        self.link = LinkState::Up(LiveLink { dial, sender, receiver, standing });
        if self.wishes.without_handshake {
            let id = self.wishes.answers_without_handshake.then(made_up_id);
            self.rules.without_handshake(id);
            let is_news = self.wishes.answers_without_handshake && self.ready.is_some();
            self.link_holds()?;
            if is_news {
                self.tell(News::WithoutHandshake);
            }
            return Ok(());
        }
        if is_resumed && self.rules.subscription_id().is_some() {
            return self.link_holds();
        }
        self.request()
    }

    /// Requests the subscription, from where the last one stopped.
    fn request(&mut self) -> Result<(), Ended> {
        let wishes = self.wishes.capabilities.clone();
        let mut request = self.rules.request(wishes).map_err(|_| Ended::Closed)?;
        if let Some(subscription_id) = self.before.clone() {
            let last_event_id = self.rules.last_event_id().cloned();
            let other = aaep::Object::new();
            Resume { subscription_id, last_event_id, other }.put_in(&mut request);
        }
        self.send(&request, None);
        Ok(())
    }

    /// Records that the subscription holds on this link.
    pub(super) fn link_holds(&mut self) -> Result<(), Ended> {
        if let LinkState::Up(up) = &mut self.link {
            up.standing = LinkStanding::Holds { since: Instant::now() };
            up.dial.holds();
        }
        self.before = self.rules.subscription_id().cloned();
        self.is_lost = false;
        self.asks.reach(true);
        match self.ready.take() {
            Some(ready) => ready.send(Ok(())).map_err(|_| Ended::Closed)?,
            None => self.tell(News::Reconnected),
        }
        self.send_waiting();
        Ok(())
    }

    /// Handles a link that ended by itself.
    pub(super) fn link_ended(&mut self, end: &LinkEnd) -> Result<(), Ended> {
        if !matches!(end, LinkEnd::Refused { .. }) && self.try_another_wire() {
            return Ok(());
        }
        self.fail_first_connection(ConnectError::Line(end.clone()))?;
        match end {
            LinkEnd::Refused { reason } => Err(Ended::Refused(reason.clone())),
            LinkEnd::Closed { code: Some(code), reason } if FOR_GOOD.contains(code) => {
                Err(Ended::ClosedByProducer(Some(reason.clone()).filter(|it| !it.is_empty())))
            }
            end => {
                self.link_down(&format!("{end}"), Duration::ZERO);
                Ok(())
            }
        }
    }

    /// Handles a rejected request. Some rejections are temporary.
    pub(super) fn rejected(&mut self, rejected: Box<SubscriptionRejected>) -> Result<(), Ended> {
        let is_asked = !self.link.holds();
        if is_asked
            && rejected.reason_code == ReasonCode::CapabilitiesIncompatible
            && self.wishes.leave_out_extensions()
        {
            // Perhaps two extensions share a prefix (§7.3.1). Without them the person at least receives
            // something.
            self.link_down(&rejected.reason_message, Duration::ZERO);
            return Ok(());
        }
        let passes = matches!(
            rejected.reason_code,
            ReasonCode::RateLimit | ReasonCode::TransportUnavailable | ReasonCode::Unknown
        );
        if !is_asked || self.ready.is_some() || !passes {
            return Err(Ended::Rejected(rejected));
        }
        let least = Duration::from_secs(rejected.retry_after_seconds.unwrap_or(0));
        self.link_down(&rejected.reason_message, least);
        Ok(())
    }

    /// Records that there is no link, and schedules another attempt, not before `least`.
    pub(super) fn link_down(&mut self, why: &str, least: Duration) {
        let (dial, held_for) = match std::mem::replace(&mut self.link, LinkState::Nowhere) {
            LinkState::Up(mut up) => {
                let held_for = match up.standing {
                    LinkStanding::Holds { since } => since.elapsed(),
                    LinkStanding::Asked { .. } => {
                        up.dial.led_nowhere();
                        Duration::ZERO
                    }
                };
                (up.dial, held_for)
            }
            LinkState::Down { dial, .. } => (dial, Duration::ZERO),
            link => {
                self.link = link;
                return;
            }
        };
        if held_for >= SETTLED_AFTER {
            self.backoff.reset();
        }
        let wait = self.backoff.next(random()).max(least);
        self.link = LinkState::Down { dial, until: Instant::now() + wait };
        self.rules.interrupted();
        self.reorder.interrupted();
        self.stop_sending();
        self.asks.reach(false);
        let doubtful = self.asks.doubt_answers();
        self.waiting.extend(doubtful);
        let (why, attempt) = (aaep::printable(why).to_string(), self.backoff.attempts());
        self.tell(News::Reconnecting { why, attempt, wait });
    }

    /// While `connect` waits for the first subscription, a wire that fails makes way for the next one.
    fn try_another_wire(&mut self) -> bool {
        let is_another = match &mut self.link {
            LinkState::Up(up) => self.ready.is_some() && up.dial.led_nowhere(),
            _ => false,
        };
        if is_another
            && let LinkState::Up(up) = std::mem::replace(&mut self.link, LinkState::Nowhere)
        {
            self.sending = None;
            self.link = LinkState::Down { dial: up.dial, until: Instant::now() };
        }
        is_another
    }

    /// If `connect` still waits for the first subscription, reports the failure to it and ends the task.
    fn fail_first_connection(&mut self, error: ConnectError) -> Result<(), Ended> {
        match self.ready.take() {
            Some(ready) => {
                let _ = ready.send(Err(error));
                Err(Ended::Closed)
            }
            None => Ok(()),
        }
    }
}
