//! The metrics of the hub, for `/metrics` (Prometheus text).
//!
//! Numbers only: no words, names, ids or addresses of anyone. Labels are fixed words of this program, so
//! that nobody outside can make the list grow. Clones share their counts; counting costs one atomic
//! addition, or a short read lock where there is a label.

use std::fmt;
use std::sync::Arc;

use aaep::extension::AskOutcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The bucket limits of the histograms, in seconds: from a tenth of a millisecond to ten seconds.
const SECONDS: [f64; 12] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];

/// The metrics of a hub.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<MetricsShared>,
}

struct MetricsShared {
    registry: Registry,
    subscriptions: Gauge,
    audiences: Gauge,
    subscribers_held: Gauge,
    subscribers_blocked: Gauge,
    connections: Gauge,
    asks_open: Gauge,
    audit_missing: Gauge,
    beyond_bounds: Gauge,
    published: Counter,
    repeated: Counter,
    delivered: Counter,
    instructions: Counter,
    settled: Family<OutcomeLabel, Counter>,
    refused: Family<ReasonLabel, Counter>,
    answers: Family<StatusLabel, Counter>,
    critical_latency: Histogram,
    commit: Histogram,
    changes: Counter,
    store_failures: Counter,
}

/// How an ask was settled.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: String,
}

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// The status of an HTTP response.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl Metrics {
    /// Starts with all counts at zero.
    pub fn new() -> Self {
        Metrics { shared: Arc::new(MetricsShared::new()) }
    }

    /// Sets the number of subscriptions, including those whose subscriber is away.
    pub fn subscriptions(&self, count: u64) {
        set(&self.shared.subscriptions, count);
    }

    /// Sets the number of audiences: sets of subscribers with the same terms, encoded for once.
    pub fn audiences(&self, count: u64) {
        set(&self.shared.audiences, count);
    }

    /// Sets the number of subscribers with events that wait because of their rate or pace.
    pub fn subscribers_held(&self, count: u64) {
        set(&self.shared.subscribers_held, count);
    }

    /// Sets the number of subscribers that read more slowly than events arrive.
    pub fn subscribers_blocked(&self, count: u64) {
        set(&self.shared.subscribers_blocked, count);
    }

    /// Sets the number of open connections.
    pub fn connections(&self, count: u64) {
        set(&self.shared.connections, count);
    }

    /// Sets the number of open asks.
    pub fn asks_open(&self, count: u64) {
        set(&self.shared.asks_open, count);
    }

    /// Sets the number of audit log entries that are stored but not yet in the file.
    pub fn audit_missing(&self, count: u64) {
        set(&self.shared.audit_missing, count);
    }

    /// Counts an event accepted from an agent.
    pub fn published(&self) {
        self.shared.published.inc();
    }

    /// Counts an event that had been published before.
    pub fn repeated(&self) {
        self.shared.repeated.inc();
    }

    /// Counts events handed to the wires, once for each subscriber.
    pub fn delivered(&self, count: u64) {
        self.shared.delivered.inc_by(count);
    }

    /// Counts an instruction from a person to an agent: a prompt, a cancellation, a correction.
    pub fn instructed(&self) {
        self.shared.instructions.inc();
    }

    /// Counts a settled ask.
    pub fn settled(&self, outcome: &AskOutcome) {
        let outcome = outcome.as_str().to_owned();
        self.shared.settled.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Counts a refusal. The reason is a code of this program.
    pub fn refused(&self, reason: &'static str) {
        self.shared.refused.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// Counts a response with this status.
    pub fn answered(&self, status: u16) {
        // This program chooses the status, from no more than a few dozen.
        self.shared.answers.get_or_create(&StatusLabel { status }).inc();
    }

    /// Records the time from accepting a critical event to handing it to the wire.
    pub fn critical_latency(&self, seconds: f64) {
        self.shared.critical_latency.observe(seconds);
    }

    /// Records how long the store took to make changes durable.
    pub fn committed(&self, seconds: f64, changes: u64) {
        self.shared.commit.observe(seconds);
        self.shared.changes.inc_by(changes);
    }

    /// Sets the number of commits in this run that exceeded a bound.
    pub fn beyond_bounds(&self, commits: u64) {
        self.shared.beyond_bounds.set(i64::try_from(commits).unwrap_or(i64::MAX));
    }

    /// Counts a failure of the store to make changes durable.
    pub fn commit_failed(&self) {
        self.shared.store_failures.inc();
    }

    /// All metrics in the text form that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string fails only if a metric fails, and none of these does.
        match encode(&mut text, &self.shared.registry) {
            Ok(()) => text,
            Err(fmt::Error) => String::new(),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl MetricsShared {
    fn new() -> Self {
        let mut shared = MetricsShared {
            registry: Registry::with_prefix("aaep"),
            subscriptions: Gauge::default(),
            audiences: Gauge::default(),
            subscribers_held: Gauge::default(),
            subscribers_blocked: Gauge::default(),
            connections: Gauge::default(),
            asks_open: Gauge::default(),
            audit_missing: Gauge::default(),
            beyond_bounds: Gauge::default(),
            published: Counter::default(),
            repeated: Counter::default(),
            delivered: Counter::default(),
            instructions: Counter::default(),
            settled: Family::default(),
            refused: Family::default(),
            answers: Family::default(),
            critical_latency: Histogram::new(SECONDS),
            commit: Histogram::new(SECONDS),
            changes: Counter::default(),
            store_failures: Counter::default(),
        };
        shared.register_gauges();
        shared.register_counters();
        shared
    }

    fn register_gauges(&mut self) {
        let list: [(&str, &str, &Gauge); 8] = [
            ("subscriptions", "Subscriptions, connected or away", &self.subscriptions),
            ("audiences", "Sets of subscribers with the same terms", &self.audiences),
            ("subscribers_held", "Subscribers for whom events wait", &self.subscribers_held),
            ("subscribers_blocked", "Subscribers that read too slowly", &self.subscribers_blocked),
            ("connections", "Open connections", &self.connections),
            ("asks_open", "Questions that wait for an answer", &self.asks_open),
            (
                "audit_entries_missing_in_file",
                "Entries of the audit log that are stored but not yet in its file",
                &self.audit_missing,
            ),
            (
                "store_beyond_bounds",
                "Commits with something beyond its bound, which is a mistake of the hub",
                &self.beyond_bounds,
            ),
        ];
        for (name, help, gauge) in list {
            self.registry.register(name, help, gauge.clone());
        }
    }

    fn register_counters(&mut self) {
        let list: [(&str, &str, &Counter); 6] = [
            ("published_events", "Events taken in from agents", &self.published),
            ("repeated_events", "Events that had come before", &self.repeated),
            ("deliveries", "Events handed to subscribers", &self.delivered),
            ("instructions", "What people told agents", &self.instructions),
            ("store_changes", "Changes made durable", &self.changes),
            ("store_failures", "Changes that could not be made durable", &self.store_failures),
        ];
        for (name, help, counter) in list {
            self.registry.register(name, help, counter.clone());
        }
        self.registry.register("asks_settled", "Settled questions", self.settled.clone());
        self.registry.register("refusals", "What was refused", self.refused.clone());
        self.registry.register("http_answers", "Answers to requests", self.answers.clone());
        self.registry.register(
            "critical_latency_seconds",
            "From taking a critical event in to handing it to the wire",
            self.critical_latency.clone(),
        );
        self.registry.register(
            "store_commit_seconds",
            "Making changes durable",
            self.commit.clone(),
        );
    }
}

fn set(gauge: &Gauge, count: u64) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_out_as_they_went_in() {
        let metrics = Metrics::new();
        let other = metrics.clone();
        metrics.subscriptions(3);
        metrics.subscriptions(2);
        other.delivered(5);
        metrics.delivered(2);
        metrics.published();
        metrics.settled(&AskOutcome::Accept);
        metrics.settled(&AskOutcome::Reject);
        other.settled(&AskOutcome::Reject);
        metrics.refused("not_started");
        metrics.answered(204);
        metrics.committed(0.000_3, 7);
        metrics.critical_latency(0.002);
        let text = metrics.text();
        for line in [
            "aaep_subscriptions 2",
            "aaep_deliveries_total 7",
            "aaep_published_events_total 1",
            "aaep_asks_settled_total{outcome=\"accept\"} 1",
            "aaep_asks_settled_total{outcome=\"reject\"} 2",
            "aaep_refusals_total{reason=\"not_started\"} 1",
            "aaep_http_answers_total{status=\"204\"} 1",
            "aaep_store_changes_total 7",
            "aaep_store_commit_seconds_bucket{le=\"0.0005\"} 1",
            "aaep_critical_latency_seconds_count 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing in:\n{text}");
        }
    }

    #[test]
    fn everything_is_there_before_anything_happened() {
        let text = Metrics::new().text();
        for name in ["subscriptions", "asks_open", "audit_entries_missing_in_file", "deliveries"] {
            assert!(
                text.contains(&format!("# TYPE aaep_{name} ")),
                "{name} is missing in:\n{text}"
            );
        }
    }
}
