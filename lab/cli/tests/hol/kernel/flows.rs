//! Several flows in the kernel world.

use std::path::Path;

use crate::program::{failure, ok};
use serde_json::Value;

/// 500-octet messages every 10 ms over 400 kbit/s, next to `background`.
const CONDITIONS: [&str; 22] = [
    "--world=kernel:uml",
    "--json",
    "--workload=oneway",
    "--size=500B",
    "--count=300",
    "--repetitions=1",
    "--bandwidth=400kbit",
    "--delay=25ms",
    "--queue=12p",
    "--set",
    "workload.interval=10ms",
    "--set",
    "workload.start=2s",
    "--set",
    "workload.connect_timeout=10s",
    "--set",
    "workload.late_limit=1h",
    "--set",
    "network.nodes=['client', 'other', 'server']",
    "--set",
    "network.links=[{ from = 'client', to = 'server' }, { from = 'other', to = 'client', rate = '100Mbit', delay = '0ms' }]",
    "--set",
];

fn arguments<'a>(transport: &'a str, background: &'a str) -> Vec<&'a str> {
    [&["compare", transport][..], &CONDITIONS, &[background]].concat()
}

fn with_background(transport: &str, background: &str) -> Value {
    let line = ok(Path::new("."), &arguments(transport, background));
    serde_json::from_str(line.trim()).expect(&line)
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn greedy_connection_takes_its_share_repeatably() {
    let alone = with_background("tcp", "background=[]");
    let throughput = |row: &Value| row["throughput_kbps"].as_f64().unwrap();
    assert!((330.0..=390.0).contains(&throughput(&alone)), "{alone}");
    let greedy =
        "background=[{ transport = 'tcp', count = 2, workload = { kind = 'bulk', from = 'other' } }]";
    let [row, again] = [(); 2].map(|()| with_background("tcp", greedy));
    assert!(throughput(&row) < 0.8 * throughput(&alone), "{row}");
    assert!(row["background_kbps"].as_f64().unwrap() > 40.0, "{row}");
    assert!(row["connect_ms"].as_f64().unwrap() > 52.0, "{row}");
    assert_eq!(row["digest"], again["digest"]);
}

/// The receive window has to grow to 188 kB: `tcp_rcv_space_adjust`.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn a_greedy_connection_fills_a_long_path_as_in_the_model() {
    let conditions = ["--delay=75ms", "--count=1000", "--repetitions=1"];
    let [model, kernel] = throughputs("tcp", &conditions).map(|(mean, _)| mean);
    assert!(model > 7_000.0 && (model / kernel - 1.0).abs() < 0.01, "{model} for {kernel} kbit/s");
}

/// Returns a column for echoes over 10 Mbit/s, in the model and in the kernel.
fn delays(transport: &str, conditions: &[&str], column: &str) -> [f64; 2] {
    ["--world=model", "--world=kernel:uml"].map(|world| {
        let question =
            ["compare", transport, world, "--json", "--workload=echo", "--bandwidth=10Mbit", "--loss=0%"];
        let line = ok(Path::new("."), &[&question[..], conditions].concat());
        let row: Value = serde_json::from_str(line.trim()).expect(&line);
        row[column].as_f64().expect(column)
    })
}

/// Returns the throughput of a greedy connection over 10 Mbit/s in the model and in the kernel, in kbit/s, each with
/// half its interval.
fn throughputs(transport: &str, conditions: &[&str]) -> [(f64, Option<f64>); 2] {
    ["--world=model", "--world=kernel:uml"].map(|world| {
        let question = ["compare", transport, world, "--json", "--workload=bulk"];
        let line =
            ok(Path::new("."), &[&question[..], &["--bandwidth=10Mbit", "--loss=0%"], conditions].concat());
        let row: Value = serde_json::from_str(line.trim()).expect(&line);
        (row["throughput_kbps"].as_f64().unwrap(), row["throughput_ci95_kbps"].as_f64())
    })
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn two_associations_carry_every_message_repeatably() {
    let [one, row, again] =
        ["sctp", "sctp:associations=2", "sctp:associations=2"].map(|t| with_background(t, "background=[]"));
    assert!(row["failed"] == 0 && row["unconnected"] == 0, "{row}");
    assert_eq!(row["digest"], again["digest"]);
    assert_ne!(row["digest"], one["digest"]);
}

/// With `metrics_cache=ssthresh`, Linux stores ssthresh of a closed connection, and the next one ends slow start
/// there: `tcp_init_metrics`.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn hosts_that_remember_ssthresh_slow_the_next_connection_down() {
    let second = |transport| {
        let set = [
            "background=[{ messages = 300, spread = '0s', workload = { kind = 'oneway', size = '500B', interval = '0ms' } }]",
            "network.events=[{ at = '30s', loss = '0%' }]",
            "workload.start=31s",
            "workload.interval=0ms",
        ];
        let set = set.iter().flat_map(|set| ["--set", set]);
        let question =
            ["compare", transport, "--world=kernel:uml", "--json", "--workload=oneway", "--size=500B"];
        let network = ["--count=1000", "--repetitions=1", "--loss=5%", "--bandwidth=10Mbit", "--delay=75ms"];
        let late = ["--set", "workload.late_limit=1h"];
        let arguments: Vec<&str> = question.into_iter().chain(network).chain(late).chain(set).collect();
        let line = ok(Path::new("."), &arguments);
        serde_json::from_str::<Value>(line.trim()).expect(&line)["throughput_kbps"].as_f64().unwrap()
    };
    let [forgets, remembers] = ["tcp", "tcp:metrics_cache=ssthresh"].map(second);
    assert!(remembers < 0.8 * forgets, "{remembers} of {forgets} kbit/s");
}

/// Returns, for both worlds, `keys` of the comparison in which a slow server has the processing model `service`.
fn of_a_weak_server<const N: usize>(
    transport: &str,
    service: &str,
    more: &[&str],
    keys: [&str; N],
) -> [[f64; N]; 2] {
    let service = format!("hosts.server.service={service}");
    ["--world=model", "--world=kernel:uml"].map(|world| {
        let question = [
            "compare",
            transport,
            world,
            "--json",
            "--repetitions=1",
            "--loss=0%",
            "--delay=1ms",
            "--set",
            &service,
        ];
        let line = ok(Path::new("."), &[&question[..], more].concat());
        let row: Value = serde_json::from_str(line.trim()).expect(&line);
        keys.map(|key| row[key].as_f64().expect(key))
    })
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn a_server_takes_its_time_for_each_message_as_in_the_model() {
    let random = ["--workload=echo", "--rate=60/s", "--count=2000", "--set", "workload.arrivals=poisson"];
    for transport in ["tcp", "sctp:nagle=false"] {
        let [[model], [kernel]] =
            of_a_weak_server(transport, "5ms", &["--workload=pingpong", "--count=100"], ["mean_ms"]);
        assert!(model > 7.0 && (model - kernel).abs() < 0.3, "{transport}: {model} for {kernel} ms");
        let [[model], [kernel]] = of_a_weak_server(transport, "10ms", &random, ["mean_ms"]);
        // 2 ms on the link and 10 ms of service; the rest is waiting, on average 7.5 ms.
        assert!(model > 17.0 && (model / kernel - 1.0).abs() < 0.03, "{transport}: {model} for {kernel} ms");
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn slow_server_limits_greedy_clients_equally() {
    let greedy = [
        "--workload=bulk",
        "--size=500B",
        "--count=4000",
        "--set",
        "background=[{ spread = '0s', workload = \
                   { kind = 'bulk', size = '500B' } }]",
    ];
    for transport in ["tcp", "sctp"] {
        let keys = ["throughput_kbps", "background_kbps", "fairness"];
        for [own, other, fairness] in of_a_weak_server(transport, "1ms", &greedy, keys) {
            assert!((own + other - 4000.0).abs() < 200.0, "{transport}: {own} and {other} kbit/s");
            assert!(fairness > 0.995, "{transport}: {own} and {other} kbit/s");
        }
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn contradicting_settings_of_a_node_are_refused() {
    let deaf = "background=[{ transport = 'tcp:sack=false' }]";
    let refused = failure(Path::new("."), &arguments("tcp", deaf)).1;
    assert!(refused.contains("[[background]] number 1") && refused.contains("tcp_sack"), "{refused}");
    let careless = "background=[{ transport = 'sctp:no_checksums' }]";
    let refused = failure(Path::new("."), &arguments("sctp", careless)).1;
    assert!(
        refused.contains("[[background]] number 1") && refused.contains("applies to all nodes"),
        "{refused}"
    );
}

/// RFC 9260 section 5.1: requests sent before the association is established are bundled with COOKIE ECHO and answered
/// a round trip earlier.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn one_to_many_sockets_send_data_with_cookie_echo() {
    let arguments = |transport, early| {
        let page = ["--workload=page", "--set", "workload.objects=0", "--set", early, "--delay=25ms"];
        let run = ["compare", transport, "--world=kernel:uml", "--json", "--count=10", "--repetitions=1"];
        [&run[..], &page].concat()
    };
    let page = |transport, early| -> f64 {
        let line = ok(Path::new("."), &arguments(transport, early));
        let row: Value = serde_json::from_str(line.trim()).expect(&line);
        row["mean_ms"].as_f64().expect(&line)
    };
    let [in_time, early] = ["workload.early=false", "workload.early=true"];
    let one_to_many = "sctp:socket=one-to-many";
    let [late, early_page] = [in_time, early].map(|early| page(one_to_many, early));
    assert!((late - early_page - 50.0).abs() < 1.0, "{late} and {early_page} ms");
    let one_to_one = page("sctp", in_time);
    assert!((late - one_to_one).abs() < 1.0, "{late} and {one_to_one} ms");
    let refused = failure(Path::new("."), &arguments("sctp", early)).1;
    assert!(refused.contains("use socket=one-to-many"), "{refused}");
}

mod nightly {
    use super::*;

    /// Drops are random, so the means of several runs are compared; they differ by at most 5 %, as far as these runs
    /// can tell.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn greedy_connection_behind_early_drops_is_as_fast_as_in_the_model() {
        let red = ["--set", "network.discipline={ red = { min = '15kB', max = '45kB' } }"];
        let conditions = [&red[..], &["--delay=10ms", "--count=16000", "--repetitions=8"]].concat();
        let [(model, uncertain), (kernel, also)] = throughputs("tcp:cc=reno", &conditions);
        let open = uncertain.unwrap().hypot(also.unwrap());
        assert!(
            model < 9_200.0 && open < 0.03 * kernel,
            "{model} ± {uncertain:?}, {kernel} ± {also:?} kbit/s"
        );
        assert!((model - kernel).abs() < 0.05 * kernel + open, "{model} for {kernel} ± {open} kbit/s");
    }

    /// With a greedy connection, messages wait in a long queue, only briefly with CoDel, and not at all with fair
    /// queueing (RFC 8290): both worlds differ by at most 5 %.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn delays_behind_active_queue_management_match_the_model() {
        let [long, short, fair] = ["droptail", "codel", "fq_codel"].map(|discipline| {
            let discipline = format!("network.discipline={discipline}");
            let greedy = "background=[{ workload = { kind = 'bulk' } }]";
            let set = [&discipline, greedy, "workload.start=3s", "network.queue=1000p"];
            let set: Vec<&str> = set.into_iter().flat_map(|set| ["--set", set]).collect();
            let load = ["--rate=20/s", "--size=100B", "--count=600", "--repetitions=2"];
            delays("tcp", &[&set[..], &load].concat(), "p50_ms")
        });
        assert!(long.iter().all(|median| *median > 200.0), "{long:?}");
        assert!(short.iter().all(|median| (22.0..30.0).contains(median)), "{short:?}");
        assert!(fair.iter().all(|median| (20.0..21.5).contains(median)), "{fair:?}");
        for [model, kernel] in [short, fair] {
            assert!((model / kernel - 1.0).abs() < 0.05, "{model} for {kernel} ms");
        }
    }
}
