//! A producer in memory: the test says what it does, message by message.

use std::time::Duration;

use aaep_subscriber::{
    Ask, ConnectError, Dial, DialFailure, Dialled, News, Subscriber, WhereFrom, Wishes,
    connect_with,
};
use aaep_transport::link::{Bearer, link};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Longer than anything that a test waits for; time is paused, so it costs nothing.
pub(crate) const LONG: Duration = Duration::from_hours(1);

/// Where lines come from. What the producer puts in is what the next call gets.
pub(crate) struct Wire {
    sender: mpsc::Sender<(Bearer, WhereFrom)>,
    /// Whether subscriptions go on by themselves on a new line, as with server-sent events.
    resumes: bool,
    /// How many more wires there are to try.
    others: usize,
}

impl Wire {
    pub(crate) fn that_resumes(mut self) -> Self {
        self.resumes = true;
        self
    }

    pub(crate) fn with_others(mut self, others: usize) -> Self {
        self.others = others;
        self
    }
}

impl Dial for Wire {
    async fn dial(&mut self, from: WhereFrom) -> Result<Dialled, DialFailure> {
        let (link, bearer) = link();
        let is_resumed = self.resumes && from.subscription_id.is_some();
        match self.sender.send((bearer, from)).await {
            Ok(()) => Ok(Dialled { link, is_resumed }),
            Err(_) => Err(DialFailure { why: "Nobody is there.".to_owned(), is_final: false }),
        }
    }

    fn led_nowhere(&mut self) -> bool {
        let is_another = self.others > 0;
        self.others = self.others.saturating_sub(1);
        is_another
    }
}

/// The producer's side of all lines.
pub(crate) struct Producer(mpsc::Receiver<(Bearer, WhereFrom)>);

/// One line, as the producer has it.
pub(crate) struct Connection(pub(crate) Bearer);

pub(crate) fn producer() -> (Wire, Producer) {
    let (sender, receiver) = mpsc::channel(1);
    (Wire { sender, resumes: false, others: 0 }, Producer(receiver))
}

impl Producer {
    /// The next line that a subscriber opens.
    pub(crate) async fn connection(&mut self) -> Connection {
        let came = timeout(LONG, self.0.recv()).await.expect("a line in time");
        Connection(came.expect("a subscriber").0)
    }

    /// The next line, with where the subscriber left off.
    pub(crate) async fn resumed(&mut self) -> (Connection, WhereFrom) {
        let came = timeout(LONG, self.0.recv()).await.expect("a line in time");
        let (bearer, from) = came.expect("a subscriber");
        (Connection(bearer), from)
    }

    /// The next line, with the subscription granted on it; also what was asked for.
    pub(crate) async fn grant(&mut self, name: &str) -> (Connection, Json) {
        let mut connection = self.connection().await;
        let request = connection.hears().await;
        assert_eq!(request["type"], "subscription.request", "{request}");
        connection.says(&accepted(name, &request)).await;
        (connection, request)
    }

    /// Whether a subscriber opens another line within the time.
    pub(crate) async fn is_called_within(&mut self, time: Duration) -> bool {
        matches!(timeout(time, self.0.recv()).await, Ok(Some(_)))
    }
}

impl Connection {
    /// What the subscriber says next.
    pub(crate) async fn hears(&mut self) -> Json {
        let text = timeout(LONG, self.0.outgoing()).await.expect("in time").expect("a subscriber");
        serde_json::from_str(&text).expect("JSON")
    }

    /// What the subscriber says last, or nothing.
    pub(crate) async fn hears_the_end(&mut self) -> Vec<Json> {
        let mut all = Vec::new();
        while let Some(text) = timeout(LONG, self.0.outgoing()).await.expect("in time") {
            all.push(serde_json::from_str(&text).expect("JSON"));
        }
        all
    }

    /// Whether the subscriber says nothing for a while.
    pub(crate) async fn hears_nothing_for(&mut self, time: Duration) -> bool {
        timeout(time, self.0.outgoing()).await.is_err()
    }

    pub(crate) async fn says(&self, message: &Json) {
        assert!(self.0.incoming(message.to_string()).await, "the subscriber is gone");
    }
}

/// A subscriber with its subscription, and the producer with its line.
pub(crate) async fn connected(wishes: Wishes) -> (Subscriber, Producer, Connection) {
    let (wire, mut producer) = producer();
    let (subscriber, granted) =
        tokio::join!(connect_with(wire, wishes), async { producer.grant("one").await });
    let mut subscriber = subscriber.expect("a subscription");
    assert!(matches!(next(&mut subscriber).await, News::TermsChanged(_)));
    (subscriber, producer, granted.0)
}

/// Connects where the producer does as it is told.
pub(crate) async fn connect_to<F: Future<Output = ()>>(
    does: impl FnOnce(Producer) -> F,
) -> Result<Subscriber, ConnectError> {
    let (wire, producer) = producer();
    let (connected, ()) =
        tokio::join!(timeout(LONG, connect_with(wire, Wishes::new("reader"))), does(producer));
    connected.expect("in time")
}

pub(crate) async fn next(subscriber: &mut Subscriber) -> News {
    timeout(LONG, subscriber.next()).await.expect("news in time").expect("news")
}

/// The next question; nothing else may come before it.
pub(crate) async fn next_ask(subscriber: &mut Subscriber) -> Ask {
    match next(subscriber).await {
        News::Ask(ask) => ask,
        other => panic!("no question but {other:?}"),
    }
}

/// The end of the next question that ends, whatever comes before.
pub(crate) async fn next_ended(subscriber: &mut Subscriber) -> Ask {
    match until(subscriber, |news| matches!(news, News::AskEnded(_))).await.pop() {
        Some(News::AskEnded(ask)) => ask,
        other => panic!("no end of a question but {other:?}"),
    }
}

/// Everything up to and with the first news that is it.
pub(crate) async fn until(subscriber: &mut Subscriber, is_it: impl Fn(&News) -> bool) -> Vec<News> {
    let mut all = Vec::new();
    let waiting = async {
        loop {
            all.push(next(subscriber).await);
            if all.last().is_some_and(&is_it) {
                return;
            }
        }
    };
    timeout(LONG, waiting).await.expect("it in time");
    all
}

pub(crate) fn accepted(name: &str, request: &Json) -> Json {
    json!({
        "type": "subscription.accepted", "subscription_id": format!("sub_{name}"),
        "aaep_version": "1.0.0", "producer": { "agent_id": "weaver" },
        "honored_capabilities": request["capabilities"],
    })
}

pub(crate) fn event(number: u64, kind: &str, fields: &Json) -> Json {
    let mut event = json!({
        "@context": ["https://aaep-protocol.org/context/v1", aaep::extension::CONTEXT],
        "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_n{number}"),
        "session_id": "sess_loom", "timestamp": "2026-05-24T14:22:11.342Z",
        "producer": { "agent_id": "weaver" },
    });
    for (key, value) in fields.as_object().expect("an object") {
        event[key] = value.clone();
    }
    event
}

pub(crate) fn progress(number: u64) -> Json {
    event(number, "progress.updated", &json!({ "progress": { "percent": number % 100 } }))
}

pub(crate) fn confirmation(number: u64, timeout_seconds: u64) -> Json {
    let fields = json!({
        "action": "Delete the database.", "consequence": "All is lost.", "urgency": "critical",
        "reply_token": format!("rpl_n{number}"), "timeout_seconds": timeout_seconds,
        "default_decision": "reject", "summary_normal": "May I delete the database?",
    });
    event(number, "awaiting.confirmation", &fields)
}

/// Tells how the question with this number was settled.
pub(crate) fn notice(number: u64, asked: u64, outcome: &str, decided_by: &str) -> Json {
    let resolution = json!({
        "reply_token": format!("rpl_n{asked}"), "outcome": outcome, "decided_by": decided_by,
    });
    let fields = json!({
        "from_state": "awaiting_input", "to_state": "thinking",
        "extensions": { "agentvoice": { "resolution": resolution } },
    });
    event(number, "state.changed", &fields)
}
