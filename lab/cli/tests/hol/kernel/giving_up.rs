//! The time after which an application gets an error because its peer has failed, or after which it is served again: the model compared
//! with Linux.

use std::path::Path;

use crate::program::ok;

const EXPERIMENT: &str = r#"
transports = [
    "tcp", "tcp:max_retries=8", "tcp:user_timeout=10s", "sctp", "sctp:association_max_retrans=4",
]
messages = 100
repetitions = 1

[workload]
kind = "echo"
rate = "20/s"

[network]
delay = "20ms"

[[network.events]]
at = "2s"
down = true
"#;

/// Returns this time in ms of each transport.
fn times(dir: &Path, world: &str, metric: &str, more: &[&str]) -> Vec<(String, f64)> {
    let run = ["run", "gone.toml", "--world", world, "--out", world];
    ok(dir, &[&run, more].concat());
    let points = std::fs::read(dir.join(world).join("points.json")).unwrap();
    let points: serde_json::Value = serde_json::from_slice(&points).unwrap();
    let of = |point: &serde_json::Value| {
        (point["transport"].as_str().unwrap().to_owned(), point[metric].as_f64().expect("a time"))
    };
    points.as_array().unwrap().iter().map(of).collect()
}

fn agree(metric: &str, more: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("gone.toml"), EXPERIMENT).unwrap();
    let [model, linux] = ["model", "kernel:uml"].map(|world| times(dir.path(), world, metric, more));
    assert_eq!(model.len(), linux.len());
    for ((transport, model), (_, linux)) in model.iter().zip(&linux) {
        // The kernel's timers end with ticks of 4 ms; SCTP's heartbeats have jitter.
        let tolerance = if transport.starts_with("sctp") { 0.02 * model } else { 4.0 };
        assert!((model - linux).abs() <= tolerance, "{transport}: {model} ms in the model, {linux} in Linux");
    }
}

/// Linux: net/ipv4/tcp_timer.c tcp_write_timeout; RFC 9260 section 8.1.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn message_in_flight_fails_at_the_time_of_linux() {
    agree("noticed_ms", &[]);
}

/// Linux: net/ipv4/tcp_timer.c tcp_keepalive_timer.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn idle_connection_fails_at_the_time_of_linux() {
    agree(
        "noticed_ms",
        &[
            "--set",
            "transports=['tcp:keepalive=60s,keepalive_interval=10s,keepalive_probes=6', 'tcp:keepalive=60s,user_timeout=90s']",
            "--set",
            "network.events.0.at=500s",
            "--set",
            "workload.rate=0.001/s",
            "--set",
            "messages=3",
        ],
    );
}

/// Linux: net/sctp/outqueue.c __sctp_outq_flush_rtx postpones HEARTBEATs, which would double the RTO; kernel/time/timer.c
/// calc_wheel_index. SCTP came back after 17.8 s instead of 5.6, TCP after 7.9 instead of 8.6.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn application_is_served_again_after_an_outage_at_the_time_of_linux() {
    let events = "network.events=[{ at = '5s', down = true }, { at = '10s', down = false }]";
    let transports = "transports=['tcp', 'sctp', 'sctp:rto_min=200ms']";
    let set = [events, transports, "messages=1500", "workload.rate=50/s"];
    agree("outage_ms", &set.map(|value| ["--set", value]).concat());
}
