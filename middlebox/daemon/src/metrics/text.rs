//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use super::{Histogram, Numbers};

/// The MIME type of the text.
pub(crate) const MIME: &str = "text/plain; version=0.0.4";

/// Nanoseconds per second: Prometheus uses base units.
const SECOND: f64 = 1e9;

pub(super) fn of(numbers: &Numbers) -> String {
    let mut text = Text(String::new());
    text.head("simco_requests_total", "counter", "Requests about rules, by type and result");
    for ((name, refusal), count) in &numbers.requests {
        // RFC 4540 section 4.2.3: the basic type of a negative reply is 3.
        let result = refusal.map_or("ok".to_owned(), |sub_type| format!("0x03{sub_type:02X}"));
        text.value(&format!("simco_requests_total{{type=\"{name}\",result=\"{result}\"}}"), *count);
    }
    text.head("simco_refused_sessions_total", "counter", "Sessions that were refused, by code");
    for (sub_type, count) in &numbers.refused_sessions {
        text.value(&format!("simco_refused_sessions_total{{result=\"0x03{sub_type:02X}\"}}"), *count);
    }
    let handshakes = "TLS handshakes that came to nothing";
    text.one("simco_refused_handshakes_total", "counter", handshakes, numbers.refused_handshakes);
    text.head("simco_shortages_total", "counter", "Requests beyond a quota, or beyond what there is");
    for (what, count) in &numbers.shortages {
        text.value(&format!("simco_shortages_total{{what=\"{what}\"}}"), *count);
    }
    text.one("simco_connections", "gauge", "Connections that are open", numbers.connections);
    text.one("simco_connections_total", "counter", "Connections that were accepted", numbers.accepted);
    text.one("simco_rules", "gauge", "Policy rules that are held", numbers.rules);
    text.one("simco_received_bytes_total", "counter", "Octets from agents", numbers.received);
    text.one("simco_sent_bytes_total", "counter", "Octets to agents", numbers.sent);
    let failures = "Batches that packet filter or journal refused as a whole";
    text.one("simco_failures_total", "counter", failures, numbers.failures);
    let lost = "Lines of the log that were left out because they were not read in time";
    text.one("simco_log_lost_lines_total", "counter", lost, numbers.lost_lines);
    text.histogram("simco_turn_seconds", "Time of a turn", &numbers.turns, SECOND);
    let work = "Counted work of a turn, about seconds of a processor";
    text.histogram("simco_turn_work_seconds", work, &numbers.work, SECOND);
    text.histogram("simco_batch_changes", "Changes made in one go", &numbers.batches, 1.0);
    text.histogram("simco_filter_seconds", "Time of the packet filter for a batch", &numbers.filter, SECOND);
    text.histogram("simco_journal_seconds", "Time of the journal for a batch", &numbers.journal, SECOND);
    text.0
}

struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn value(&mut self, series: &str, value: u64) {
        let _ = writeln!(self.0, "{series} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        self.value(name, value);
    }

    /// Its values are multiples of `1 / unit`.
    fn histogram(&mut self, name: &str, help: &str, values: &Histogram, unit: f64) {
        self.head(name, "histogram", help);
        for (bound, count) in values.cumulative() {
            self.value(&format!("{name}_bucket{{le=\"{}\"}}", bound as f64 / unit), count);
        }
        self.value(&format!("{name}_bucket{{le=\"+Inf\"}}"), values.total());
        let _ = writeln!(self.0, "{name}_sum {}", values.sum() as f64 / unit);
        self.value(&format!("{name}_count"), values.total());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_simco::{Body, Lifetime, Pid, Refusal, Reply, Request};

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let mut numbers = Numbers { rules: 3, ..Numbers::default() };
        let status = Request::Prs { pid: Pid(1) };
        let change = Request::Plc { pid: Pid(1), lifetime: Lifetime(9) };
        numbers.count_answer(&status, &Body::Refusal(Refusal::NoSuchRule));
        for _ in 0..2 {
            numbers.count_answer(&change, &Body::Reply(Reply::Plc { lifetime: Lifetime(9) }));
        }
        numbers.journal.count(200_000);
        let text = of(&numbers);
        for line in [
            "# TYPE simco_requests_total counter",
            "simco_requests_total{type=\"PLC\",result=\"ok\"} 2",
            "simco_requests_total{type=\"PRS\",result=\"0x0343\"} 1",
            "# HELP simco_rules Policy rules that are held.",
            "simco_rules 3",
            "simco_journal_seconds_bucket{le=\"0.0001\"} 0",
            "simco_journal_seconds_bucket{le=\"0.0002\"} 1",
            "simco_journal_seconds_bucket{le=\"+Inf\"} 1",
            "simco_journal_seconds_sum 0.0002",
            "simco_journal_seconds_count 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
    }
}
