//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use hol_simco::Usage;

use super::process::Process;
use super::{Histogram, MetricValues};

/// The MIME type of Prometheus' text format.
pub(crate) const MIME_TYPE: &str = "text/plain; version=0.0.4";

/// Nanoseconds per second, to convert times to seconds, Prometheus' base unit.
const NANOSECONDS_PER_SECOND: f64 = 1e9;

pub(super) fn format_numbers(numbers: &MetricValues) -> String {
    let mut text = Text(String::new());
    text.head("simco_requests_total", "counter", "Requests about rules, by type and result");
    for ((name, refusal), count) in &numbers.requests {
        // RFC 4540 section 4.2.3: the basic type of a negative reply is 3.
        let result = refusal.map_or("ok".to_owned(), |sub_type| format!("0x03{sub_type:02X}"));
        text.value(&format!("simco_requests_total{{type=\"{name}\",result=\"{result}\"}}"), *count);
    }
    text.head("simco_refused_sessions_total", "counter", "Refused sessions, by code");
    for (sub_type, count) in &numbers.refused_sessions {
        text.value(&format!("simco_refused_sessions_total{{result=\"0x03{sub_type:02X}\"}}"), *count);
    }
    let handshakes = "Failed TLS handshakes";
    text.one("simco_refused_handshakes_total", "counter", handshakes, numbers.refused_handshakes);
    text.head(
        "simco_shortages_total",
        "counter",
        "Requests that exceeded a quota or the available resources",
    );
    for (what, count) in &numbers.shortages {
        text.value(&format!("simco_shortages_total{{what=\"{what}\"}}"), *count);
    }
    text.one("simco_connections", "gauge", "Open connections", numbers.connections);
    text.one("simco_connections_total", "counter", "Accepted connections", numbers.accepted);
    text.one("simco_rules", "gauge", "Policy rules", numbers.rules);
    for (name, help, value) in AGENT_GAUGES {
        text.head(name, "gauge", help);
        for (agent, usage) in &numbers.usage {
            text.value(&format!("{name}{{agent=\"{}\"}}", escape(agent)), value(usage) as u64);
        }
    }
    text.one("simco_nat_ports", "gauge", "Ports that the NAT can assign for each protocol", numbers.ports);
    text.one("simco_mappings", "gauge", "Mappings that PCP and NAT-PMP created", numbers.mappings);
    text.head(
        "simco_mapping_answers_total",
        "counter",
        "Responses of PCP and NAT-PMP, by operation and result code",
    );
    for ((protocol, operation, result), count) in &numbers.mapping_answers {
        let labels = format!("protocol=\"{protocol}\",operation=\"{operation}\",result=\"{result}\"");
        text.value(&format!("simco_mapping_answers_total{{{labels}}}"), *count);
    }
    text.one(
        "simco_standby_synchronized",
        "gauge",
        "1 if a standby has a copy of every rule, otherwise 0",
        numbers.standbys,
    );
    text.one("simco_received_bytes_total", "counter", "Octets from agents", numbers.received);
    text.one("simco_sent_bytes_total", "counter", "Octets to agents", numbers.sent);
    let failures =
        "Batches that failed as a whole, because of the packet filter, the journal or a missing standby";
    text.one("simco_failures_total", "counter", failures, numbers.failures);
    let lost = "Log lines dropped because they were not read in time";
    text.one("simco_log_lost_lines_total", "counter", lost, numbers.dropped_lines);
    text.add_histogram(
        "simco_turn_seconds",
        "Duration of a turn of the event loop",
        &numbers.turns,
        NANOSECONDS_PER_SECOND,
    );
    let work = "Estimated processor time of a turn of the event loop";
    text.add_histogram("simco_turn_work_seconds", work, &numbers.work, NANOSECONDS_PER_SECOND);
    text.add_histogram("simco_batch_changes", "Changes per batch", &numbers.batches, 1.0);
    text.add_histogram(
        "simco_filter_seconds",
        "Time that the packet filter needs for a batch",
        &numbers.filter,
        NANOSECONDS_PER_SECOND,
    );
    text.add_histogram(
        "simco_journal_seconds",
        "Time that the journal and the standby need for a batch",
        &numbers.journal,
        NANOSECONDS_PER_SECOND,
    );
    text.head("simco_build_info", "gauge", "The version of the program");
    text.value(concat!("simco_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1);
    if let Some(process) = Process::read() {
        text.process(&process);
    }
    text.0
}

/// A gauge: its name, its description, and the function that returns its value.
type Gauge = (&'static str, &'static str, fn(&Usage) -> usize);

/// The gauges that each agent has.
const AGENT_GAUGES: [Gauge; 5] = [
    ("simco_agent_sessions", "Open sessions of an agent", |usage| usage.sessions),
    ("simco_agent_rules", "Policy rules of an agent", |usage| usage.rules),
    ("simco_agent_elements", "Elements of an agent's rules in the packet filter", |usage| usage.elements),
    (
        "simco_agent_nat_addresses",
        "NAT addresses that an agent uses as a whole, or with all ports of a protocol",
        |usage| usage.addresses,
    ),
    ("simco_agent_nat_ports", "NAT ports that an agent uses one by one", |usage| usage.ports),
];

/// Escapes the value of a label in Prometheus' text format.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
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

    /// Adds the metrics of a process that Prometheus' own client libraries have, too.
    fn process(&mut self, process: &Process) {
        let Process { cpu_seconds, start_seconds, resident, virtual_memory, files, max_files } = *process;
        for (name, kind, help, value) in [
            ("process_cpu_seconds_total", "counter", "Processor time in user and system mode", cpu_seconds),
            (
                "process_start_time_seconds",
                "gauge",
                "Start of the process, in seconds since 1970",
                start_seconds,
            ),
        ] {
            self.head(name, kind, help);
            let _ = writeln!(self.0, "{name} {value:.2}");
        }
        self.one("process_resident_memory_bytes", "gauge", "Resident memory", resident);
        self.one("process_virtual_memory_bytes", "gauge", "Virtual memory", virtual_memory);
        self.one("process_open_fds", "gauge", "Open files", files);
        self.one("process_max_fds", "gauge", "Maximum open files", max_files);
    }

    /// Adds a histogram. Its values are divided by `unit` to convert them to Prometheus' base unit.
    fn add_histogram(&mut self, name: &str, help: &str, values: &Histogram, unit: f64) {
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
    fn the_text_has_the_format_of_prometheus() {
        let mut numbers = MetricValues { rules: 3, ..MetricValues::default() };
        let status = Request::Prs { pid: Pid(1) };
        let change = Request::Plc { pid: Pid(1), lifetime: Lifetime(9) };
        numbers.count_answer(&status, &Body::Refusal(Refusal::NoSuchRule));
        for _ in 0..2 {
            numbers.count_answer(&change, &Body::Reply(Reply::Plc { lifetime: Lifetime(9) }));
        }
        numbers.journal.count(200_000);
        let usage = Usage { rules: 3, ports: 2, ..Usage::default() };
        numbers.usage.insert("a \"lan\"".into(), usage);
        numbers.mapping_answers.insert(("pcp", "map", 0), 5);
        let text = format_numbers(&numbers);
        for line in [
            "# TYPE simco_requests_total counter",
            "simco_requests_total{type=\"PLC\",result=\"ok\"} 2",
            "simco_requests_total{type=\"PRS\",result=\"0x0343\"} 1",
            "# HELP simco_rules Policy rules.",
            "simco_rules 3",
            "simco_agent_rules{agent=\"a \\\"lan\\\"\"} 3",
            "simco_agent_nat_ports{agent=\"a \\\"lan\\\"\"} 2",
            "simco_mapping_answers_total{protocol=\"pcp\",operation=\"map\",result=\"0\"} 5",
            "# TYPE process_cpu_seconds_total counter",
            "simco_journal_seconds_bucket{le=\"0.0001\"} 0",
            "simco_journal_seconds_bucket{le=\"0.0002\"} 1",
            "simco_journal_seconds_bucket{le=\"+Inf\"} 1",
            "simco_journal_seconds_sum 0.0002",
            "simco_journal_seconds_count 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
    }

    /// Names of metrics contain base units, and those of counters end with `_total`:
    /// https://prometheus.io/docs/practices/naming
    #[test]
    fn names_follow_the_conventions() {
        let text = format_numbers(&MetricValues::default());
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let mut names: Vec<&str> = Vec::new();
        for (name, kind) in types {
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
            assert!(
                kind != "histogram" || name.ends_with("_seconds") || name.ends_with("_changes"),
                "{name}"
            );
            assert!(name.starts_with("simco_") || name.starts_with("process_"), "{name}");
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
            names.push(name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "each name occurs once");
        let documented = include_str!("../../../../docs/simco-service.md");
        for name in names.iter().filter(|name| name.starts_with("simco_")) {
            assert!(documented.contains(&format!("`{name}")), "{name} is not documented");
        }
    }

    #[test]
    fn the_dashboard_and_the_alerts_use_existing_metrics() {
        let text = format_numbers(&MetricValues::default());
        let names: Vec<&str> =
            text.lines().filter_map(|line| Some(line.strip_prefix("# TYPE ")?.split_once(' ')?.0)).collect();
        let files = [
            include_str!("../../../../packaging/simcod/grafana-dashboard.json"),
            include_str!("../../../../packaging/simcod/prometheus-alerts.yml"),
        ];
        for file in files {
            let words = file.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let used = words.filter(|word| word.starts_with("simco_") || word.starts_with("process_"));
            let mut count = 0;
            for name in used.filter(|name| *name != "simco_agent_") {
                let name = name.strip_suffix("_bucket").unwrap_or(name);
                assert!(names.contains(&name), "there is no {name}");
                count += 1;
            }
            assert!(count > 5, "{count} metrics in a file");
        }
    }
}
