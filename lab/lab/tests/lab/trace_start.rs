//! `network.trace_start`: where each run begins in the trace of its path.

use hol_lab::{Experiment, Point, Source};
use hol_network::EventSpec;

const LTE: &str = "time_s,rate_Mbit,delay_ms\n0,10,20\n10,2,60\n25,8,30\n40,10,20\n";
const LATER: &str = "time_s,rate_Mbit\n3,5\n4,1\n";
const SCRIPT: &str = "set ns [new Simulator]\nset client [$ns node]\nset server [$ns node]\n\
    $ns duplex-link $client $server 0.4Mb 25ms DropTail\n";
const SHORT: &str = "time_s,rate_Mbit,delay_ms\n0,5,20\n2,1,20\n4,5,20\n";

fn parse(text: &str) -> Result<Experiment, hol_lab::InputError> {
    let text = format!("transports = ['tcp', 'sctp:streams=8']\nmessages = 100\n{text}");
    let source = Source::new("t.toml", text)
        .with_file("lte.csv", LTE)
        .with_file("short.csv", SHORT)
        .with_file("later.csv", LATER)
        .with_file("every10ms", "10\n20\n130\n")
        .with_file("link.ns", SCRIPT);
    Experiment::parse("t", &source)
}

fn points(text: &str) -> Vec<Point> {
    parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).points
}

fn events(point: &Point, repetition: u32) -> Vec<EventSpec> {
    point.scenario(repetition).network.events
}

const RANDOM: &str = "network.trace = 'lte.csv'\nnetwork.trace_start = 'random'\n";

#[test]
fn paired_runs_begin_at_the_same_position_and_repetitions_elsewhere() {
    let points = points(RANDOM);
    let [tcp, sctp] = &points[..] else { panic!("two transports") };
    let mut all: Vec<Vec<EventSpec>> = Vec::new();
    for repetition in 0..10 {
        let own = events(tcp, repetition);
        assert_eq!(own, events(sctp, repetition));
        assert!(!all.contains(&own), "repetition {repetition}");
        all.push(own);
    }
}

#[test]
fn another_seed_begins_elsewhere_and_the_same_one_at_the_same_position() {
    let of = |seed: u64| events(&points(&format!("seed = {seed}\n{RANDOM}"))[0], 0);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

/// Opportunities repeat in any case, and a table that has a start does, too.
#[test]
fn start_is_the_beginning_by_default_and_a_table_with_a_start_repeats() {
    let table = points("network.trace = 'lte.csv'");
    let repeating = points("network.trace = 'lte.csv'\nnetwork.trace_start = '0s'");
    let (once, repeated) = (events(&table[0], 3), events(&repeating[0], 3));
    assert_eq!((once.len(), &repeated[..once.len()]), (4, &once[..]));
    let next: Vec<u64> = repeated[4..8].iter().map(|event| event.at.as_millis()).collect();
    assert_eq!(next, [65_000, 80_000, 95_000, 120_000], "the line of 55 s has the values of the last one");

    let default = points("network.trace = 'every10ms'");
    let beginning = points("network.trace = 'every10ms'\nnetwork.trace_start = '0s'");
    assert_eq!(default[0].id, beginning[0].id);
    assert_eq!(events(&default[0], 3), events(&beginning[0], 3));
    assert_eq!(default[0].network, beginning[0].network);
}

/// A point contains its whole trace, so that a result can be continued without the file.
#[test]
fn a_point_with_a_random_start_is_read_again_from_its_result() {
    let point = points(RANDOM).remove(0);
    let kept = serde_json::to_string(&point).unwrap();
    let again: Point = serde_json::from_str(&kept).unwrap();
    assert_eq!(again.identity(), point.id);
    assert_eq!(events(&again, 4), events(&point, 4));
    assert!(point.path_changes() && !kept.contains("lte.csv"));
    assert_ne!(point.id, points("network.trace = 'lte.csv'")[0].id);
}

#[test]
fn trace_starts_and_traces_may_be_swept() {
    let all = points("network.trace = 'lte.csv'\n[sweep]\n'network.trace_start' = ['0s', '12 s', 'random']");
    let first = |point: &Point| events(point, 0)[0].delay.unwrap().as_millis();
    assert_eq!((first(&all[0]), first(&all[1])), (20, 60));
    assert_eq!(all[2].axis_value("network.trace_start"), Some("random"));
    let all = points("network.trace_start = '3s'\n[sweep]\n'network.trace' = ['lte.csv', 'short.csv']");
    let rates = |point: &Point| {
        events(point, 0).iter().take(5).map(|event| event.rate.unwrap().to_string()).collect::<Vec<_>>()
    };
    // The rate of the first line is that of the last, so that it changes nothing.
    assert_eq!(rates(&all[0]), ["10Mbit", "2Mbit", "8Mbit", "10Mbit", "2Mbit"]);
    assert_eq!(rates(&all[1]), ["1Mbit", "5Mbit", "1Mbit", "5Mbit", "1Mbit"]);
    let all = points("network.trace_start = 'random'\n[sweep]\n'network.trace' = ['lte.csv', 'short.csv']");
    assert!(events(&all[0], 0).len() < events(&all[1], 0).len());
    assert_ne!(events(&all[0], 0), events(&all[1], 0));
}

#[test]
fn an_invalid_trace_start_is_refused_at_its_position() {
    for (text, place, words) in [
        (
            "[network]\ntrace_start = 'random'",
            "t.toml:4:15",
            "no trace is set; name its file, as in trace = \"lte.csv\"",
        ),
        ("[network]\ntrace = {}\ntrace_start = '0s'", "t.toml:5:15", "no trace is set"),
        (
            "[network]\ntrace = 'lte.csv'\ntrace_start = '56s'",
            "t.toml:5:15",
            "56s is beyond the end of lte.csv, which lasts 55s",
        ),
        (
            "[network]\ntrace = { up = 'lte.csv', down = 'short.csv' }\ntrace_start = '12s'",
            "t.toml:5:15",
            "12s is beyond the end of short.csv, which lasts 6s; choose an earlier time",
        ),
        ("[network]\ntrace = 'lte.csv'\ntrace_start = '12'", "t.toml:5:15", "\"12\" is not a time such as"),
        (
            "[network]\ntrace = 'lte.csv'\ntrace_start = '12Mbit'",
            "t.toml:5:15",
            "\"12Mbit\" is not a time such as",
        ),
        ("[network]\ntrace = 'lte.csv'\ntrace_start = 'rnadom'", "t.toml:5:15", "did you mean \"random\"?"),
        (
            "[network]\ntrace = 'lte.csv'\ntrace_start = 12",
            "t.toml:5:15",
            "a time such as \"12s\", or \"random\"",
        ),
        (
            "network.trace_start = '3s'\nnetwork.trace = 'lte.csv'\n[sweep]\n'network.trace_start' = ['1s', '60s']",
            "t.toml:6:32",
            "60s is beyond the end",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(place) && error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_trace_without_duration_has_only_the_start_zero() {
    let parse = |start: &str| {
        let text = format!("transports = ['tcp']\nnetwork.trace = 'a.csv'\nnetwork.trace_start = '{start}'");
        Experiment::parse("t", &Source::new("t.toml", text).with_file("a.csv", "time,rate\n0s,1Mbit\n"))
    };
    assert!(parse("0s").is_ok());
    let error = parse("random").unwrap_err().to_string();
    assert!(error.contains("all lines of a.csv have the time 0"), "{error}");
}

/// If a trace sets the rate of both directions from the start, `rate` has no effect, and all points of its sweep would be the same.
#[test]
fn a_key_that_a_trace_replaces_is_refused_where_it_is_written() {
    for (text, place, key) in [
        ("network.trace = 'lte.csv'\nnetwork.rate = '5Mbit'", "t.toml:4:16", "`rate`"),
        ("network.trace = 'later.csv'\nnetwork.rate = '5Mbit'", "t.toml:4:16", "`rate`"),
        ("network.trace = 'lte.csv'\nnetwork.rtt = '5ms'", "t.toml:4:15", "`rtt`"),
        ("network.trace = 'lte.csv'\nnetwork.up.rate = '5Mbit'", "t.toml:4:19", "`rate`"),
        ("network.trace.down = 'lte.csv'\nnetwork.down.delay = '5ms'", "t.toml:4:22", "`delay`"),
        ("network.trace = 'lte.csv'\nnetwork.paths = [{ delay = '5ms' }, {}]", "t.toml:4:28", "`delay`"),
        ("network.trace = 'lte.csv'\nsweep.'network.delay' = ['5ms', '9ms']", "t.toml:4", "`delay`"),
        (
            "network.trace = 'lte.csv'\nnetwork.trace_start = 'random'\nnetwork.delay = '5ms'",
            "t.toml:5",
            "`delay`",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(
            error.starts_with(place) && error.contains(&format!("{key} has no effect")),
            "{text}: {error}"
        );
    }
    let lan = "network.trace = 'lte.csv'\nnetwork.nodes = ['client', 'server']\n[[network.lans]]\nnodes = ['client', 'server']\nrate = '1Mbit'";
    let error = parse(lan).unwrap_err().to_string();
    assert!(error.starts_with("t.toml:7:8") && error.contains("`rate` has no effect"), "{error}");
    for text in [
        "network.trace = 'lte.csv'\nnetwork.loss = '1%'",
        "network.trace.up = 'lte.csv'\nnetwork.rate = '5Mbit'",
        "network.trace.up = 'lte.csv'\nnetwork.down.rate = '5Mbit'",
        "network.rate = '5Mbit'\n[sweep]\n'network.trace' = ['lte.csv', 'later.csv']",
        "topology = 'link.ns'\nnetwork.trace = 'lte.csv'",
        "network.path = 'lte'\nnetwork.trace = 'lte.csv'",
    ] {
        points(text);
    }
}
