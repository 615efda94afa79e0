//! The time after which an application gets an error because its peer has failed: the model compared with Linux.

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

/// Returns for each transport the time in ms from the failure to the error.
fn error_times(dir: &Path, world: &str, more: &[&str]) -> Vec<(String, f64)> {
    let run = ["run", "gone.toml", "--world", world, "--out", world];
    ok(dir, &[&run, more].concat());
    let points = std::fs::read(dir.join(world).join("points.json")).unwrap();
    let points: serde_json::Value = serde_json::from_slice(&points).unwrap();
    let of = |point: &serde_json::Value| {
        (point["transport"].as_str().unwrap().to_owned(), point["noticed_ms"].as_f64().expect("an error"))
    };
    points.as_array().unwrap().iter().map(of).collect()
}

fn agree(more: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("gone.toml"), EXPERIMENT).unwrap();
    let [model, linux] = ["model", "kernel:uml"].map(|world| error_times(dir.path(), world, more));
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
    agree(&[]);
}

/// Linux: net/ipv4/tcp_timer.c tcp_keepalive_timer.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn idle_connection_fails_at_the_time_of_linux() {
    agree(&[
        "--set",
        "transports=['tcp:keepalive=60s,keepalive_interval=10s,keepalive_probes=6', 'tcp:keepalive=60s,user_timeout=90s']",
        "--set",
        "network.events.0.at=500s",
        "--set",
        "workload.rate=0.001/s",
        "--set",
        "messages=3",
    ]);
}
