//! The line to the producer: how it comes, breaks, and comes again.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use aaep::SubscriptionId;
use aaep::extension::Resume;
use aaep::handshake::{ReasonCode, SubscriptionRejected};
use aaep_transport::link::{Link, LinkEnd, LinkReceiver, LinkSender};
use tokio::time::{Instant, timeout};

use super::{HANDSHAKE_TIMEOUT, SETTLED_AFTER, Task};
use crate::backoff::random;
use crate::dial::{Dial, Dialled, NoLine, WhereFrom};
use crate::error::ConnectError;
use crate::news::{Ended, News};

/// How long getting a line may take, all wires together.
const DIAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The codes of B.2.6 with which a producer ends a subscription for good.
const FOR_GOOD: &[u16] = &[4000, 4002, 4003, 4004, 4005];

/// What answers name as their subscription where none was granted. A producer without a handshake does not look at it,
/// and the specification wants one in every answer (§6.3.1).
fn made_up_id() -> SubscriptionId {
    SubscriptionId::parse("sub_none").expect("a constant of the right form")
}

type Dialling<D> = Pin<Box<dyn Future<Output = (D, Result<Dialled, NoLine>)> + Send>>;

/// The line to the producer.
pub(super) enum Line<D> {
    /// There is none; another attempt comes then.
    Down { dial: D, until: Instant },
    /// An attempt is on its way.
    Dialling(Dialling<D>),
    /// There is one.
    Up(Up<D>),
    /// There will be none any more.
    Nowhere,
}

/// A line that is there.
pub(super) struct Up<D> {
    pub(super) dial: D,
    pub(super) sender: LinkSender,
    pub(super) receiver: LinkReceiver,
    pub(super) standing: LineStanding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineStanding {
    /// The producer has not answered the request yet.
    Asked { until: Instant },
    /// The subscription holds on it.
    Holds { since: Instant },
}

impl<D> Line<D> {
    /// When it is to be looked at again.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Line::Down { until, .. }
            | Line::Up(Up { standing: LineStanding::Asked { until }, .. }) => Some(*until),
            _ => None,
        }
    }

    /// Whether the producer has yet to answer on it.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self, Line::Up(Up { standing: LineStanding::Asked { .. }, .. }))
    }

    /// Whether a subscription holds on it.
    pub(super) fn holds(&self) -> bool {
        matches!(self, Line::Up(Up { standing: LineStanding::Holds { .. }, .. }))
    }
}

impl<D: Dial> Task<D> {
    /// Does what is due about the line.
    pub(super) fn line_due(&mut self, now: Instant) -> Result<(), Ended> {
        if self.line.deadline().is_none_or(|at| now < at) {
            return Ok(());
        }
        match std::mem::replace(&mut self.line, Line::Nowhere) {
            Line::Down { mut dial, .. } => {
                let from = WhereFrom {
                    subscription_id: self
                        .rules
                        .subscription_id()
                        .filter(|_| !self.is_lost)
                        .cloned(),
                    last_event_id: self.rules.last_event_id().cloned(),
                };
                self.line = Line::Dialling(Box::pin(async move {
                    let dialled = timeout(DIAL_TIMEOUT, dial.dial(from)).await;
                    let why = "The producer cannot be reached in time.".to_owned();
                    let late = || Err(NoLine { why, is_final: false });
                    (dial, dialled.unwrap_or_else(|_| late()))
                }));
                Ok(())
            }
            line => {
                self.line = line;
                if self.tries_another_wire() {
                    return Ok(());
                }
                self.is_first_failure(ConnectError::NoAnswer)?;
                self.line_down("The producer did not answer the request.", Duration::ZERO);
                Ok(())
            }
        }
    }

    /// An attempt came to an end.
    pub(super) fn dialled(
        &mut self,
        (dial, dialled): (D, Result<Dialled, NoLine>),
    ) -> Result<(), Ended> {
        let Dialled { link: Link { sender, receiver }, is_resumed } = match dialled {
            Ok(dialled) => dialled,
            Err(NoLine { why, is_final }) => {
                self.line = Line::Down { dial, until: Instant::now() };
                self.is_first_failure(ConnectError::NoLine(why.clone()))?;
                if is_final {
                    return Err(Ended::Refused(why));
                }
                self.line_down(&why, Duration::ZERO);
                return Ok(());
            }
        };
        let now = Instant::now();
        let standing = LineStanding::Asked { until: now + HANDSHAKE_TIMEOUT };
        self.line = Line::Up(Up { dial, sender, receiver, standing });
        if self.wishes.without_handshake {
            let id = self.wishes.answers_without_handshake.then(made_up_id);
            self.rules.without_handshake(id);
            let is_news = self.wishes.answers_without_handshake && self.ready.is_some();
            self.line_holds()?;
            if is_news {
                self.tell(News::WithoutHandshake);
            }
            return Ok(());
        }
        if is_resumed && self.rules.subscription_id().is_some() {
            return self.line_holds();
        }
        self.request()
    }

    /// Asks for the subscription, from where the last one was left.
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

    /// The subscription holds on this line.
    pub(super) fn line_holds(&mut self) -> Result<(), Ended> {
        if let Line::Up(up) = &mut self.line {
            up.standing = LineStanding::Holds { since: Instant::now() };
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

    /// The line ended by itself.
    pub(super) fn line_ended(&mut self, end: &LinkEnd) -> Result<(), Ended> {
        if !matches!(end, LinkEnd::Refused { .. }) && self.tries_another_wire() {
            return Ok(());
        }
        self.is_first_failure(ConnectError::Line(end.clone()))?;
        match end {
            LinkEnd::Refused { reason } => Err(Ended::Refused(reason.clone())),
            LinkEnd::Closed { code: Some(code), reason } if FOR_GOOD.contains(code) => {
                Err(Ended::ClosedByProducer(Some(reason.clone()).filter(|it| !it.is_empty())))
            }
            end => {
                self.line_down(&format!("{end}"), Duration::ZERO);
                Ok(())
            }
        }
    }

    /// The producer refused the request. Some refusals pass.
    pub(super) fn rejected(&mut self, rejected: Box<SubscriptionRejected>) -> Result<(), Ended> {
        let is_asked = !self.line.holds();
        if is_asked
            && rejected.reason_code == ReasonCode::CapabilitiesIncompatible
            && self.wishes.leave_out_extensions()
        {
            // Perhaps two of them share a prefix (§7.3.1). Without them the person hears something at least.
            self.line_down(&rejected.reason_message, Duration::ZERO);
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
        self.line_down(&rejected.reason_message, least);
        Ok(())
    }

    /// There is no line. Another attempt comes, not before `least`.
    pub(super) fn line_down(&mut self, why: &str, least: Duration) {
        let (dial, held_for) = match std::mem::replace(&mut self.line, Line::Nowhere) {
            Line::Up(mut up) => {
                let held_for = match up.standing {
                    LineStanding::Holds { since } => since.elapsed(),
                    LineStanding::Asked { .. } => {
                        up.dial.led_nowhere();
                        Duration::ZERO
                    }
                };
                (up.dial, held_for)
            }
            Line::Down { dial, .. } => (dial, Duration::ZERO),
            line => {
                self.line = line;
                return;
            }
        };
        if held_for >= SETTLED_AFTER {
            self.backoff.reset();
        }
        let wait = self.backoff.next(random()).max(least);
        self.line = Line::Down { dial, until: Instant::now() + wait };
        self.rules.interrupted();
        self.reorder.interrupted();
        self.stop_sending();
        self.asks.reach(false);
        let doubtful = self.asks.doubt_answers();
        self.waiting.extend(doubtful);
        let (why, attempt) = (aaep::printable(why).to_string(), self.backoff.attempts());
        self.tell(News::Reconnecting { why, attempt, wait });
    }

    /// While someone waits for the first subscription, a wire that leads nowhere makes way for the next.
    fn tries_another_wire(&mut self) -> bool {
        let is_another = match &mut self.line {
            Line::Up(up) => self.ready.is_some() && up.dial.led_nowhere(),
            _ => false,
        };
        if is_another && let Line::Up(up) = std::mem::replace(&mut self.line, Line::Nowhere) {
            self.sending = None;
            self.line = Line::Down { dial: up.dial, until: Instant::now() };
        }
        is_another
    }

    /// Whoever waits for the first subscription is told that there is none, and all is over.
    fn is_first_failure(&mut self, error: ConnectError) -> Result<(), Ended> {
        match self.ready.take() {
            Some(ready) => {
                let _ = ready.send(Err(error));
                Err(Ended::Closed)
            }
            None => Ok(()),
        }
    }
}
