//! Any experiment file is planned or refused: no panic, no hang, and bounded memory.
//!
//! `PROPTEST_CASES=1000000 cargo test -p hol-lab --test hostile` takes minutes; without it there are as many cases as run in a second. The
//! allocator limits the memory of the whole process, so these tests have their own process.

mod keys;
mod wording;

use std::alloc::System;
use std::sync::atomic::AtomicBool;

use cap::Cap;
use hol_lab::{Archive, Experiment, Plan, Point, RunResults, Source, execute};
use keys::{INTERNAL, KEYS, KEYS_OF_LISTS, VALUES};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The limit of allocated memory, over all cases: files are some hundred octets long here, and sweep up to some thousand points.
const MAX_MEMORY: usize = 256 << 20;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MAX_MEMORY);

/// Returns the number of cases, unless the environment sets it.
fn cases(default: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(default), failure_persistence: None, ..ProptestConfig::default() }
}

/// Generates a line `key = value`, mostly with a value that the key accepts.
fn line() -> impl Strategy<Value = (String, String)> {
    let known: Vec<(&str, &str)> = KEYS.lines().filter_map(|line| line.split_once(" = ")).collect();
    let inside: Vec<(&str, &str)> =
        KEYS_OF_LISTS.iter().flat_map(|(list, keys)| keys.iter().map(move |key| (*list, *key))).collect();
    let text = |(key, value): (&str, String)| (key.to_owned(), value);
    prop_oneof![
        4 => select(known.clone()).prop_map(|(key, value)| (key.to_owned(), value.to_owned())),
        2 => (select(known.clone()).prop_map(|(key, _)| key), value()).prop_map(text),
        1 => (select(inside), value()).prop_map(|((list, key), value)| (list.to_owned(), format!("[{{ {key} = {value} }}]"))),
        1 => (select(known), vec(value(), 0..6)).prop_map(|((key, _), values)| {
            (format!("sweep.'{key}'"), format!("[{}]", values.join(", ")))
        }),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let unit = select(vec![
        "ns", "ms", "s", "d", "B", "MiB", "kb", "p", "/s", "%", "bit", "mbit", "Gbit", "mbps", "", "..9",
    ]);
    prop_oneof![
        3 => select(VALUES.to_vec()).prop_map(str::to_owned),
        2 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_map(|number| format!("{number:?}").to_lowercase()),
        4 => (any::<u64>(), 0..64u32, unit).prop_map(|(number, shift, unit)| format!("'{}{unit}'", number >> shift)),
        1 => "[ -~]{0,8}".prop_map(|text| toml::Value::String(text).to_string()),
        1 => "(tcp|sctp|udp|mptcp):[a-z_]{1,10}=[0-9a-z]{0,6}".prop_map(|spec| format!("['{spec}']")),
    ]
}

/// Generates a line whose value is valid for its key and does not conflict with other lines.
fn tame_line() -> impl Strategy<Value = (String, String)> {
    let quantity = |key: &'static str, range: std::ops::Range<u64>, unit: &'static str| {
        range.prop_map(move |number| (key.to_owned(), format!("'{number}{unit}'"))).boxed()
    };
    let number = |key: &'static str, range: std::ops::Range<u64>| {
        range.prop_map(move |number| (key.to_owned(), number.to_string())).boxed()
    };
    let word = |key: &'static str, words: &[&'static str]| {
        select(words.to_vec()).prop_map(move |word| (key.to_owned(), word.to_owned())).boxed()
    };
    prop_oneof![
        quantity("network.rate", 1..1_000_000_000, "kbit"),
        quantity("network.delay", 0..1_000_000_000_000, "us"),
        quantity("network.loss", 0..101, "%"),
        quantity("network.duplicate", 0..101, "%"),
        quantity("network.corrupt", 0..101, "%"),
        quantity("network.queue", 1..1_000_000_000, "p"),
        quantity("network.mtu", 576..65_536, "B"),
        quantity("network.overhead", 0..65_536, "B"),
        quantity("workload.rate", 1..1_000_000_000, "/s"),
        quantity("workload.size", 8..1 << 24, "B"),
        quantity("workload.start", 0..36_500, "d"),
        quantity("workload.spread", 0..36_500, "d"),
        quantity("workload.late_limit", 0..36_500, "d"),
        quantity("workload.connect_timeout", 1..1_000_000, "ms"),
        number("workload.sources", 1..65_536),
        number("seed", 0..1 << 62),
        number("repetitions", 1..5),
        number("messages", 5..1 << 62),
        quantity("hosts.server.service", 0..1_000_000_000, "us"),
        word("network.police", &["{ rate = '1Mbit', burst = '1MB' }", "'none'"]),
        word("network.channel", &["'air'", "'own'"]),
        word("network.up.jitter_distribution", &["'pareto'", "{ table = [1, 2] }", "'uniform'"]),
        word("network.up.jitter_correlation", &["'50%'", "'0%'"]),
        word("network.discipline", &["'red'", "'droptail'", "{ red = { gentle = true } }"]),
        word("network.up.loss", &["{ drop = [1, 2] }", "{ good_to_bad = '1%', bad_to_good = '20%' }"]),
        word(
            "network.events",
            &["[{ at = '1s', down = true }, { at = '2s', down = false }]", "[{ at = '3s', loss = '50%' }]"]
        ),
        word("network.paths", &["[{}, { delay = '1s' }]", "[{ rate = '1mbit', up = { delay = '7msecs' } }]"]),
        word("workload.arrivals", &["'poisson'", "'periodic'"]),
        word("workload.listens", &["true", "false"]),
        word(
            "background",
            &["[{}]", "[{ count = 100, transport = 'tcp' }, { messages = 3, spread = '2s' }]"]
        ),
        word(
            "transports",
            &[
                "['tcp']",
                "['sctp:streams=65535', 'tcp:connections=1024']",
                "['udp', 'tcp:stack=linux-2.6.16,nagle']"
            ]
        ),
        word("sweep.'network.loss'", &["['0%', '7%']", "['1%', { drop = [3] }]"]),
        word("sweep.seed", &["[1, 2, 3]", "[0]"]),
    ]
}

/// Generates a file of such lines, sometimes with a few characters too many or too few.
fn file() -> impl Strategy<Value = String> {
    let damage = prop_oneof![
        4 => Just(None),
        1 => (any::<Index>(), any::<char>(), any::<bool>()).prop_map(Some),
    ];
    let kind = (Just("workload.kind".to_owned()), select(vec!["'echo'".to_owned(), "'oneway'".to_owned()]));
    let lines = prop_oneof![
        vec(line(), 0..12),
        (kind, vec(tame_line(), 0..12), vec(line(), 0..2))
            .prop_map(|(kind, tame, wild)| { [kind].into_iter().chain(tame).chain(wild).collect() }),
    ];
    (lines, damage).prop_map(|(lines, damage)| {
        let mut lines: std::collections::BTreeMap<_, _> = lines.into_iter().collect();
        lines.entry("transports".to_owned()).or_insert_with(|| "['tcp', 'sctp:streams=8']".to_owned());
        let text: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let Some((at, char, keep)) = damage else { return text };
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        chars[at] = char;
        if !keep {
            chars.truncate(at);
        }
        chars.into_iter().collect()
    })
}

/// Does everything that precedes the first run of an experiment.
fn plan(text: &str) -> Result<Vec<Point>, TestCaseError> {
    let experiment = match Experiment::parse("a", &Source::new("a.toml", text)) {
        Ok(experiment) => experiment,
        Err(error) => {
            prop_assert!(error.place.starts_with("a.toml"), "{error}");
            let said = error.problem.replace("expected", "");
            let internal = INTERNAL.iter().find(|word| said.contains(**word) && !text.contains(**word));
            // The message may show a non-ASCII character as a number that looks like a type, such as \u{f64}.
            prop_assert!(internal.is_none() || !text.is_ascii(), "{error}");
            return Ok(Vec::new());
        }
    };
    let plan = Plan::new([&experiment]);
    prop_assert!(!plan.next_runs(&RunResults::default()).is_empty());
    prop_assert!(plan.message_count() <= plan.max_messages());
    prop_assert!(plan.to_string().lines().count() >= plan.points().len());
    if let Some(point) = plan.points().first() {
        let kept = serde_json::to_string(point).expect("a point is plain data");
        let again: Point = serde_json::from_str(&kept).expect("the JSON of a point can be read");
        prop_assert_eq!(again.identity(), point.id);
    }
    Ok(experiment.points)
}

/// Returns whether the point is quick enough to run in a test: few messages and no other traffic.
fn is_tiny(point: &Point) -> bool {
    let (messages, size) = (point.messages_in(0), point.workload.size().unwrap_or_default());
    messages <= 200 && messages * size < 1 << 20 && point.background.is_empty()
}

proptest! {
    #![proptest_config(cases(4000))]
    #[test]
    fn any_file_is_planned_or_refused(text in file()) {
        plan(&text)?;
    }
}

/// Generates a trace: a table of which some cells are wrong, or times of packets.
fn trace() -> impl Strategy<Value = String> {
    let heads = select(vec![
        "",
        "time_s,rate_Mbit",
        "time,rate,delay,loss",
        "timestamp,bandwidth_kbit",
        "Timestamp,DL_bitrate,UL_bitrate",
        "time_ms;delay_ms",
        "unit_id,dtime,target,bytes_sec",
        "time_ns,rate_bit,loss_%",
        "rate_Mbit time_s",
        "time,time",
        "x",
    ]);
    let number = (any::<u64>(), 0..64_u32, select(vec!["", "s", "ms", "Mbit", "%", ".5", "kbit"]));
    let cell = prop_oneof![
        4 => number.prop_map(|(number, shift, unit)| format!("{}{unit}", number >> shift)),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        2 => select(vec!["", "-", "1.0", "0", "-1", "2019.12.31_23.59.59", "2016-09-01 00:12:30", "1568745600", "1568745600000", "a.com", "\"", "NaN"])
            .prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ];
    // Most files have times that increase.
    let row = (vec(cell, 0..4), 0..2000_u64);
    (heads, vec(row, 0..40), select(vec![",", ";", "\t", " ", ", "]), any::<bool>()).prop_map(
        |(head, rows, separator, has_times)| {
            let mut at = 0;
            let lines = rows.into_iter().map(|(cells, step)| {
                at += step;
                let time = has_times.then(|| at.to_string());
                time.into_iter().chain(cells).collect::<Vec<_>>().join(separator)
            });
            let lines: Vec<String> = std::iter::once(head.to_owned()).chain(lines).collect();
            lines.join("\n")
        },
    )
}

proptest! {
    #![proptest_config(cases(1000))]
    #[test]
    fn any_trace_is_planned_or_refused(trace in trace()) {
        for direction in ["'a.csv'", "{ up = 'a.csv' }"] {
            let text = format!("transports = ['tcp']\nmessages = 10\nrepetitions = 1\n[network]\ntrace = {direction}\n");
            let source = Source::new("a.toml", text).with_file("a.csv", trace.clone());
            if let Err(error) = Experiment::parse("a", &source) {
                prop_assert!(!error.problem.is_empty() && error.place.starts_with("a."), "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]
    #[test]
    fn planned_points_run_to_their_end(text in file(), messages in 1..100u32) {
        let text = format!("{text}\nmessages = {messages}\nrepetitions = 1\n");
        let Some(point) = plan(&text)?.into_iter().next().filter(is_tiny) else { return Ok(()) };
        let (plan, mut finished) = (Plan::of_points(vec![point]), RunResults::default());
        let done = execute(&plan, &mut finished, 1, &AtomicBool::new(false), &Archive::default(), |_, _, _| Ok(()));
        prop_assert!(done.is_ok(), "{done:?}");
        prop_assert!(plan.next_runs(&finished).is_empty());
    }
}
