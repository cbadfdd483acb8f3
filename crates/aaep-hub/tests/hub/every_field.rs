//! Every field of every message that the schemas declare, at every depth, at and beyond its bounds: each message is
//! taken or refused to its sender, the hub goes on, and a start with the same store works.
//!
//! A sample of the messages is sent, the same at each run. With `AAEP_EVERY_FIELD=full` in the environment all are.

use aaep::{Message, Mode, Object};
use aaep_engine::terms::Door;
use aaep_hub::hub::Hub;
use serde_json::{Map, Value, json};

use crate::bounds::{assert_works, unlimited};
use crate::support::{Peer, Stream, hub_in, me, publish, started, subscribe, token};

/// One message of this many is sent, and one of this many of those on sockets as well. The first is a prime, so that
/// the sample has every kind of value.
const SAMPLE: usize = 61;
const SOCKET_SAMPLE: usize = 8;

/// How many messages are published in one request, and how many bytes.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 << 20;

/// Texts that match the patterns of the schemas; the first that does is the example.
const EXAMPLES: &[&str] = &[
    "builder",
    "rpl_f",
    "sess_f",
    "sub_f",
    "evt_f",
    "out_f",
    "call_f",
    "en",
    "1.0.0",
    "text/plain",
    "2020-01-01T00:00:00.000Z",
    "Latn",
    "PROBLEM",
    "agentvoice",
    "a.b.c",
    "aaep:agent.x",
    "sha-256:0000000000000000000000000000000000000000000000000000000000000000",
];

/// The declarations of all messages.
struct Declarations(Value);

impl Declarations {
    fn new() -> Self {
        let mut all = aaep::bundled_schemas();
        let extra = |end: &str| {
            let found = all.iter().find(|it| it.path.ends_with(end));
            found.unwrap_or_else(|| panic!("{end} is declared")).schema.clone()
        };
        let on_events = extra("extensions/agentvoice.schema.json");
        let in_capabilities = extra("extensions/agentvoice.capabilities.schema.json");
        let mut schema = all.remove(0).schema;
        schema["$defs"]["envelope"]["properties"]["extensions"]["properties"] =
            json!({ "agentvoice": on_events });
        for name in ["subscription.request", "subscription.renegotiate"] {
            schema["$defs"][name]["properties"]["capabilities"]["properties"]["agentvoice"] =
                in_capabilities.clone();
        }
        Declarations(schema)
    }

    fn messages(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0["$defs"].as_object().expect("definitions").iter().filter(|it| it.0 != "envelope")
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) {
            Some(pointer) => self.0.pointer(pointer).expect("it is defined"),
            None => schema["anyOf"].get(0).or(schema["oneOf"].get(0)).unwrap_or(schema),
        }
    }

    /// The fields of an object, with those of its envelope.
    fn fields(&self, schema: &Value) -> Map<String, Value> {
        let own = schema["properties"].as_object().cloned().unwrap_or_default();
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let mut all: Map<String, Value> = parts
            .filter(|part| part["$ref"].is_string())
            .flat_map(|part| self.fields(self.resolve(part)))
            .collect();
        all.extend(own);
        all
    }

    /// A value of a declared form, with all of its fields.
    fn example(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        if let Some(only) = schema.get("const").or(schema["enum"].get(0)) {
            return only.clone();
        }
        match schema["type"].as_str().or(schema["type"][0].as_str()) {
            Some("array") => json!([self.example(&schema["items"])]),
            Some("boolean") => json!(true),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("string") if schema["format"] == "uri" => json!("https://example.org/x"),
            Some("string") => {
                let pattern = schema["pattern"].as_str().filter(|it| !it.contains("(?!"));
                let pattern = regex::Regex::new(pattern.unwrap_or("")).expect("a pattern");
                let found = EXAMPLES.iter().find(|it| pattern.is_match(it));
                json!(found.unwrap_or_else(|| panic!("{pattern} has no example")))
            }
            _ => {
                let fields = self.fields(schema).into_iter();
                Value::Object(fields.map(|(name, it)| (name, self.example(&it))).collect())
            }
        }
    }

    /// Every place in a message, with what is declared there. A place in an array is its first element.
    fn places(&self, schema: &Value, at: &str, found: &mut Vec<(String, Value)>) {
        let schema = self.resolve(schema);
        for (name, field) in self.fields(schema) {
            let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            found.push((place.clone(), self.resolve(&field).clone()));
            self.places(&field, &place, found);
        }
        if schema["items"].is_object() {
            found.push((format!("{at}/0"), self.resolve(&schema["items"]).clone()));
            self.places(&schema["items"], &format!("{at}/0"), found);
        }
    }

    /// The values that are offered at a place: at and beyond each bound, and of every other kind.
    fn values(&self, schema: &Value) -> Vec<Value> {
        let mut all = others();
        let bound = |name: &str| schema[name].as_u64().and_then(|it| usize::try_from(it).ok());
        for length in around(bound("minLength"), bound("maxLength"), &[1, 64, 1024, 16_385]) {
            for c in ["a", "\u{e9}", "\u{20ac}", "\u{1f600}", "\u{1}", "\"", "\u{202e}"] {
                all.push(c.repeat(length).into());
            }
        }
        let example = self.example(schema);
        if let (Some(text), true) = (example.as_str(), schema["pattern"].is_string()) {
            all.extend(
                [1, 59, 60, 61, 255, 70_000].map(|it| json!(format!("{text}{}", "a".repeat(it)))),
            );
        }
        if let Some([item]) = example.as_array().map(Vec::as_slice) {
            for length in around(bound("minItems"), bound("maxItems"), &[64, 3000]) {
                let items = (0..length).map(|number| match item {
                    Value::String(text) => json!(format!("{text}{number}")),
                    other => other.clone(),
                });
                all.push(items.collect());
                all.push(vec![item.clone(); length].into());
            }
        }
        for limit in ["minimum", "maximum"].iter().filter_map(|it| schema[*it].as_f64()) {
            all.extend(
                [limit - 1.0, limit, limit + 0.5, limit + 1.0, limit * 10.0].map(|it| json!(it)),
            );
            #[expect(clippy::cast_possible_truncation, reason = "limits are small whole numbers")]
            all.extend([limit as i64 - 1, limit as i64, limit as i64 + 1].map(|it| json!(it)));
        }
        all.extend(schema["enum"].as_array().into_iter().flatten().cloned());
        all.push(example);
        all
    }
}

/// Numbers of characters or items at and beyond their bounds.
fn around(least: Option<usize>, most: Option<usize>, others: &[usize]) -> Vec<usize> {
    let least = least.into_iter().flat_map(|it| [it.saturating_sub(1), it]);
    let most = most.into_iter().flat_map(|it| [it - 1, it, it + 1, (it * 10).min(70_000)]);
    least.chain(most).chain(others.iter().copied()).collect()
}

/// Values of every kind, deep and wide ones too.
fn others() -> Vec<Value> {
    let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!({ "x": inner }));
    let nested = (0..60).fold(json!([]), |inner, _| json!([inner]));
    let many: Object = (0..3000).map(|key| (format!("k{key}"), json!(1e15))).collect();
    let keys = ["", "\u{1}", "\u{202e}", "aaep", "\u{1f600}"].map(|key| json!({ key: { "x": 1 } }));
    let mut all = vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!(" "),
        json!("unheard_of"),
        json!([]),
        json!([null]),
        json!({}),
        deep(7),
        deep(9),
        deep(60),
        nested,
        json!(many),
        json!({ "k".repeat(5000): "v" }),
        json!("a".repeat(70_000)),
    ];
    all.extend(keys);
    all
}

/// Puts a value at a place, and makes the objects and arrays around it.
fn put(message: &mut Value, place: &str, value: Value) {
    let mut at = message;
    for part in place.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        at = if name == "0" && !at.is_object() {
            if at.get(0).is_none() {
                *at = json!([null]);
            }
            &mut at[0]
        } else {
            if !at.is_object() {
                *at = json!({});
            }
            &mut at[name]
        };
    }
    *at = value;
}

/// The message with as many of its optional fields as can stand together.
fn fullest(declared: &Value, example: &Value, kind: &str) -> Value {
    let required: Vec<&str> =
        declared["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_valid =
        |it: &Value| aaep::read(it.to_string().as_bytes(), Mode::Strict).violations.is_empty();
    let mut base = json!({ "type": kind });
    let fields = example.as_object().expect("an object");
    let (first, later): (Vec<_>, Vec<_>) =
        fields.iter().partition(|(name, _)| required.contains(&name.as_str()));
    for (name, value) in first {
        base[name] = value.clone();
    }
    for (name, value) in later {
        let mut more = base.clone();
        more[name] = value.clone();
        if is_valid(&more) || !is_valid(&base) {
            base = more;
        }
    }
    base
}

/// What is sent to the hub, and how much it was.
struct Sender<'h> {
    hub: &'h Hub,
    subscription: String,
    batch: Vec<Object>,
    bytes: usize,
    sent: usize,
}

impl Sender<'_> {
    /// Sends a message in each way that there is for it without a socket.
    async fn send(&mut self, mut message: Value) {
        self.sent += 1;
        if message["subscription_id"] == "sub_f" {
            message["subscription_id"] = self.subscription.clone().into();
        }
        let is_event = message["type"].as_str().is_some_and(|it| it.starts_with("aaep:agent."));
        if is_event || !message["type"].is_string() {
            self.publish(message).await;
            return;
        }
        let text = message.to_string();
        match aaep::read(text.as_bytes(), Mode::Strict).message {
            Some(Message::SubscriptionRequest(request)) => {
                let granted =
                    self.hub.subscribe(&me(), Door::Open, *request).await.expect("answered");
                // One subscription for each would be more than one principal may have.
                if let Ok(granted) = granted {
                    let close = json!({ "type": "subscription.close",
                        "subscription_id": granted.subscription_id });
                    let close = crate::support::read(&close);
                    drop(self.hub.tell(&me(), close).await.expect("answered"));
                }
            }
            Some(message) => drop(self.hub.tell(&me(), message).await.expect("answered")),
            None => {}
        }
        drop(self.hub.legacy_message(&me(), text).await);
    }

    /// Publishes an event between the beginning and the end of a session of its own, many in one request.
    async fn publish(&mut self, mut event: Value) {
        let session = format!("sess_f{}", self.sent);
        if event["session_id"] == "sess_f" {
            event["session_id"] = session.clone().into();
        }
        let end = json!({ "type": "aaep:agent.session.cancelled", "session_id": session,
            "producer": { "agent_id": "builder" }, "summary_normal": "Over.", "cancelled_by": "user" });
        if event["type"] != "aaep:agent.session.started" {
            self.batch.push(started(&session));
        }
        self.bytes += event.to_string().len();
        self.batch.extend([event, end].map(|it| it.as_object().cloned().expect("an object")));
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.flush().await;
        }
    }

    async fn flush(&mut self) {
        self.bytes = 0;
        let events = std::mem::take(&mut self.batch);
        let count = events.len();
        let outcomes = self.hub.publish(&me(), events, None).await.expect("answered");
        assert_eq!(outcomes.len(), count, "each is taken or refused");
    }
}

/// Sends messages on sockets of every kind. A socket takes few wrong ones, so each gets few.
async fn send_on_sockets(hub: &Hub, messages: &[Value]) {
    for some in messages.chunks(8) {
        let mut peers =
            [Peer::agent(hub).await, Peer::subscriber(hub).await, Peer::legacy(hub).await];
        for peer in &mut peers {
            for message in some {
                peer.try_say(&message.to_string());
            }
        }
    }
}

#[tokio::test]
async fn every_declared_field_at_and_beyond_its_bounds() {
    let is_full = std::env::var_os("AAEP_EVERY_FIELD").is_some_and(|it| it == "full");
    let step = if is_full { 1 } else { SAMPLE };
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::builder().guard(unlimited()).store(folder.path()).start().expect("a hub");
    let subscription = subscribe(&hub, json!({})).await;
    let stream = Stream::open(&hub, &subscription, None).await;
    let subscription = subscription.as_str().to_owned();
    let mut sender = Sender { hub: &hub, subscription, batch: Vec::new(), bytes: 0, sent: 0 };
    let declarations = Declarations::new();
    let (mut number, mut on_sockets) = (0_usize, Vec::new());
    for (name, declared) in declarations.messages() {
        let example = declarations.example(declared);
        let kind = example["type"].as_str().expect("a type").to_owned();
        let base = fullest(declared, &example, &kind);
        let mut places = Vec::new();
        declarations.places(declared, "", &mut places);
        places.push(("/unknown_field".to_owned(), json!({})));
        assert!(places.len() >= 3, "{name}");
        for (place, declared) in places {
            for value in declarations.values(&declared) {
                number += 1;
                if !number.is_multiple_of(step) {
                    continue;
                }
                let mut message = base.clone();
                put(&mut message, &place, value);
                if number.is_multiple_of(step * SOCKET_SAMPLE) {
                    on_sockets.push(message.clone());
                }
                sender.send(message).await;
            }
        }
        sender.flush().await;
        assert_works(&hub, name).await;
        drop(hub.withdraw(&me(), &token("rpl_f")).await);
    }
    assert!(sender.sent >= 500, "{}", sender.sent);
    send_on_sockets(&hub, &on_sockets).await;
    assert_works(&hub, "sockets").await;
    drop(stream);
    hub.stop().await;
    drop(hub);
    let hub = hub_in(folder.path());
    assert_eq!(hub.notes(), Vec::<String>::new());
    publish(&hub, started("sess_after")).await;
    assert_works(&hub, "after a restart").await;
    hub.stop().await;
}
