//! The commands as users and scripts run them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{self, failure, ok};
use hol_lab::{Experiment, Source};
use serde_json::Value;

const FIELDS: [&str; 48] = [
    "world",
    "transport",
    "stack",
    "workload",
    "precise",
    "offered",
    "completed",
    "failed",
    "mean_ms",
    "ci95_ms",
    "mean_low_ms",
    "mean_high_ms",
    "steady",
    "run_median_ms",
    "runs_collapsed",
    "repetitions",
    "timeouts",
    "backoffs",
    "p50_ms",
    "p90_ms",
    "p99_ms",
    "p999_ms",
    "max_ms",
    "throughput_kbps",
    "throughput_ci95_kbps",
    "messages_per_s",
    "messages_ci95_per_s",
    "connect_ms",
    "connect_ci95_ms",
    "unconnected",
    "background_kbps",
    "fairness",
    "first_octets_ms",
    "objects_ms",
    "playable_percent",
    "glitches_per_minute",
    "packets",
    "packets_lost_each",
    "seed",
    "outage_ms",
    "outage_ci95_ms",
    "runs_not_recovered",
    "late_messages",
    "backlog_first_ms",
    "backlog_last_ms",
    "noticed_ms",
    "digest",
    "run_wall_s",
];

fn here() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn compare(arguments: &[&str]) -> Vec<Value> {
    let all = [&["compare", "--json"], arguments].concat();
    rows(&ok(here().path(), &all))
}

/// The most important test of a lab: two runs of the same transport do not differ.
#[test]
fn transport_can_be_compared_with_itself() {
    let text = ok(here().path(), &["compare", "tcp", "tcp", "--count", "200", "--loss", "1%"]);
    assert!(text.contains("tcp (2) is exactly as fast as tcp (10 paired runs)"), "{text}");
}

#[test]
fn compare_json_has_exactly_the_documented_fields() {
    let rows = compare(&["tcp", "sctp:streams=8", "--count", "200", "--repetitions", "2", "--seed", "9"]);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let mut fields: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        let mut promised = FIELDS.to_vec();
        fields.sort_unstable();
        promised.sort_unstable();
        assert_eq!(fields, promised);
        assert_eq!(
            (&row["offered"], &row["seed"], &row["workload"]),
            (&200.into(), &9.into(), &"rpc".into())
        );
        assert_eq!(row["failed"], 0);
    }
    assert_eq!((&rows[0]["transport"], &rows[1]["transport"]), (&"tcp".into(), &"sctp:streams=8".into()));
}

/// Long replies delay short ones on TCP's single stream, but not on separate streams.
#[test]
fn each_size_of_a_mix_has_its_own_row_and_its_own_sentence() {
    let arguments = ["compare", "tcp", "quic:per_message", "--reply", "1kB=9,200kB=1", "--rate", "10/s"];
    let more = ["--path", "lte", "--loss", "0.5%", "--count", "2000", "--repetitions", "4"];
    let text = ok(here().path(), &[&arguments[..], &more[..]].concat());
    assert!(
        text.starts_with("rpc, requests of 200B, replies of 1 kB (90 %) or 200 kB (10 %) at 10/s"),
        "{text}"
    );
    for class in ["1 kB replies", "200 kB replies"] {
        assert!(text.lines().any(|line| line.starts_with(class) && line.contains("median")), "{text}");
        let sentence = format!("{class}: ");
        assert!(text.lines().any(|line| line.starts_with(&sentence) && line.contains("95 % CI")), "{text}");
    }
    // Long replies of one run fell behind, not the run.
    let arguments = ["compare", "quic", "quic:per_message", "--reply", "1kB=9,200kB=1", "--rate", "10/s"];
    let path = ["--bandwidth", "20Mbit", "--delay", "20ms", "--loss", "1%"];
    let more = ["--count", "1000", "--repetitions", "4"];
    let text = ok(here().path(), &[&arguments[..], &path, &more].concat());
    assert!(text.contains("\n200 kB replies: quic:per_message is "), "{text}");
    let (_, problem) = failure(here().path(), &["compare", "tcp", "--reply", "1kB=9,200"]);
    assert!(problem.contains("reply"), "{problem}");
}

#[test]
fn mix_and_filter_select_the_workload_simco() {
    let text =
        ok(here().path(), &["compare", "tcp", "--mix", "enable=1", "--count", "20", "--repetitions", "1"]);
    assert!(text.starts_with("simco at 100/s"), "{text}");
}

#[test]
fn an_unknown_number_is_null() {
    let rows = compare(&["tcp", "--count", "50", "--repetitions", "1"]);
    assert_eq!(rows[0]["ci95_ms"], Value::Null);
}

#[test]
fn mean_without_loss_is_the_round_trip_time() {
    let small = ["--workload", "simco", "--count", "500", "--delay", "20ms"];
    let rows = compare(&[&["tcp", "sctp:streams=8"], &small[..]].concat());
    assert_eq!(rows.len(), 2);
    for row in rows {
        let mean = row["mean_ms"].as_f64().unwrap();
        assert!((40.0..40.1).contains(&mean), "{mean}");
    }
}

#[test]
fn the_same_seed_gives_the_same_digest_for_any_number_of_jobs() {
    let digest = |jobs, seed| {
        let flags = ["sctp:streams=4", "--loss", "2%", "--count", "400", "--jobs", jobs, "--seed", seed];
        compare(&flags)[0]["digest"].clone()
    };
    assert_eq!(digest("1", "5"), digest("2", "5"));
    assert_ne!(digest("1", "5"), digest("1", "6"));
}

#[test]
fn compare_prints_a_conclusion_and_at_most_80_columns() {
    let text = ok(
        here().path(),
        &["compare", "tcp", "tcp:stack=linux-6.12", "--count", "100", "--repetitions", "2"],
    );
    assert!(text.contains("tcp:stack=linux-6.12 is exactly as fast as tcp (2 paired runs)"), "{text}");
    assert!(text.contains("where the time goes") && text.contains("network 20.2 ms"), "{text}");
    let picture = text.split("share of messages").nth(1).unwrap();
    assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
}

#[test]
fn command_line_mistakes_are_usage_errors_with_a_remedy() {
    let cases: [(&[&str], &str); 34] = [
        (&["compare"], "hol compare tcp sctp:streams=1"),
        (&["compare", "tpc"], "error: transport 1: unknown transport \"tpc\""),
        (&["compare", "sctp:stream=8"], "did you mean \"streams\"?"),
        (&["compare", "tcp", "--delay", "10"], "--delay 10: \"10\" is not a time such as \"10ms\""),
        (&["compare", "tcp", "--loss", "0.01"], "--loss 0.01: \"0.01\" is not a percentage"),
        (&["compare", "tcp", "--rate", "0/s"], "--rate 0/s: "),
        (&["compare", "tcp", "--count", "5"], "--count 5: 5 messages are too few for 10 repetitions"),
        (&["compare", "tcp", "--workload", "simco", "--size", "64B"], "--size 64B: unknown key \"size\""),
        (&["compare", "tcp", "--set", "network.jiter=1ms"], "did you mean \"jitter\"?"),
        (&["compare", "tcp", "--set", "jitter"], "write key=value"),
        (&["reproduce", "ikr35"], "known: eklund2004, fidelity, ikr53"),
        (&["reproduce", "fidelity"], "hol validate fidelity"),
        (&["reproduce", "ikr53", "--only", "exp7"], "ikr53 has buffer, echo, exp1"),
        (&["reproduce", "ikr53", "--only", "filter"], "filter needs --world kernel"),
        (&["compare", "tcp", "--filter", "nftables"], "use the kernel world"),
        (&["compare", "tcp", "--mix", "enable=1,delete=2"], "1 for enable and 2 for delete"),
        (&["compare", "tcp", "--delay", "-5ms"], "--delay -5ms: \"-5ms\" is not a time"),
        (&["compare", "tcp", "--seed", "-1"], "from 0 to 18446744073709551615"),
        (&["compare", "tcp", "--seed", "99999999999999999999999"], "from 0 to 18446744073709551615"),
        (&["compare", "tcp", "--set", "network.loss=0.5"], "as in \"50%\" for a share of 0.5"),
        (&["compare", "tcp", "--count", "1"], "--repetitions 1"),
        (&["compare", "tcp", "--jobs", "0"], "write a whole number of at least 1"),
        (&["compare", "tcp", "--set", "sweep={seed=[1,2]}"], "`hol compare` uses one set of conditions"),
        (&["run", "a.toml", "--loss", "1%"], "write --set network.loss=VALUE"),
        (&["run", "a.toml", "--repetitions=5"], "write --set repetitions=VALUE"),
        (&["reproduce", "ikr53", "--job", "2"], "a similar argument exists: '--jobs'"),
        (&["verify", "out", "--sample", "0"], "write a whole number of at least 1"),
        (
            &["compare", "tcp", "--jitter", "5ms"],
            "`hol compare` has no option --jitter; write --set network.jitter=VALUE",
        ),
        (&["compare", "tcp", "--reorder-by", "5ms"], "write --set network.reorder_by=VALUE"),
        (&["compare", "tcp", "--latency", "5ms"], "`hol compare` has no option --latency; write --delay"),
        (&["run", "a.toml", "--latency", "5ms"], "write --set network.delay=VALUE"),
        (
            &["compare", "tcp", "--set", "network.trace=lte.csv"],
            "lte.csv: No such file or directory (os error 2); paths are relative to the working directory",
        ),
        (&["compare", "tcp", "--set", "messages=1e6"], "write 1000000"),
        (&["frobnicate"], "unrecognized subcommand"),
    ];
    for (arguments, expected) in cases {
        let (code, message) = failure(here().path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(message.starts_with("error: "), "{arguments:?}: {message}");
    }
    let (_, message) = failure(here().path(), &["report", "a", "--repetitions", "2"]);
    assert!(!message.contains("similar") && !message.contains("as a value"), "{message}");
}

#[test]
fn error_in_a_file_has_its_line_and_column() {
    let dir = here();
    fs::write(dir.path().join("a.toml"), "transports = ['tcp']\n[network]\ndealy = '10ms'\n").unwrap();
    let (code, message) = failure(dir.path(), &["run", "a.toml"]);
    assert_eq!(message, "error: a.toml:3:1: unknown key \"dealy\"; did you mean \"delay\"?\n");
    assert_eq!(code, 2);
    let (code, message) = failure(dir.path(), &["run", "b.toml"]);
    assert!(code == 1 && message.starts_with("error: b.toml: cannot read"), "{message}");
    assert!(fs::read_dir(dir.path()).unwrap().count() == 1, "nothing is left behind");
}

#[test]
fn the_plan_shows_every_point_and_the_cost() {
    let hello = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/hello.toml");
    let text = ok(here().path(), &["run", hello.to_str().unwrap(), "--plan"]);
    assert!(text.contains("hello: SCTP-8 network.loss=0.5%"), "{text}");
    assert!(text.contains("15 points, 150,000 messages"), "{text}");
}

#[test]
fn rows_of_a_sweep_name_their_point() {
    let dir = here();
    let text =
        "transports = ['tcp']\nmessages = 20\nrepetitions = 2\n[sweep]\n'network.loss' = ['0%', '1%']\n";
    fs::write(dir.path().join("a.toml"), text).unwrap();
    let rows = rows(&ok(dir.path(), &["run", "a.toml", "--json"]));
    let losses: Vec<&Value> = rows.iter().map(|row| &row["axes"]["network.loss"]).collect();
    assert_eq!(losses, ["0%", "1%"]);
    assert_eq!((&rows[0]["experiment"], &rows[0]["offered"]), (&"a".into(), &20.into()));
}

#[test]
fn experiment_with_background_reports_the_share_of_each_flow() {
    let competing = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/competing.toml");
    let dir = here();
    let short = ["--set", "messages=200", "--set", "repetitions=2", "--out", "r"];
    let rows = rows(&ok(dir.path(), &[&["run", competing.to_str().unwrap(), "--json"], &short[..]].concat()));
    let (alone, crowded) = (&rows[0], &rows[3]);
    assert_eq!(
        (&alone["axes"]["background.count"], &crowded["axes"]["background.count"]),
        (&"0".into(), &"8".into())
    );
    assert!(alone["fairness"].is_null() && crowded["fairness"].as_f64().unwrap() > 0.5, "{crowded}");
    assert!(crowded["connect_ms"].as_f64() > alone["connect_ms"].as_f64(), "{crowded}");
    assert!(crowded["throughput_kbps"].as_f64() < alone["throughput_kbps"].as_f64(), "{crowded}");
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert!(page.contains("<h2>All points</h2>") && page.contains("fairness (Jain)"));
    assert!(page.contains("Throughput over competitors"), "a figure");
    let lead = page.split("<p class=\"lead\">").nth(1).and_then(|rest| rest.split("</p>").next());
    assert!(lead.is_some_and(|lead| lead.contains("SCTP ordered")), "a headline: {lead:?}");
}

#[test]
fn series_of_a_deep_queue_are_drawn_in_the_report() {
    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/bufferbloat.toml");
    let dir = here();
    let rows = rows(&ok(dir.path(), &["run", experiment.to_str().unwrap(), "--json", "--out", "r"]));
    let mean = |transport: &str, discipline: &str| {
        let is_it =
            |row: &&Value| row["label"] == transport && row["axes"]["network.discipline"] == discipline;
        rows.iter().find(is_it).and_then(|row| row["mean_ms"].as_f64()).unwrap()
    };
    // A round trip takes 40 ms, a full queue adds 600 ms.
    assert!(mean("TCP CUBIC", "droptail") > 300.0 && mean("TCP BBR", "droptail") < 100.0, "{rows:?}");
    assert!(mean("TCP CUBIC", "fq_codel") < 50.0 && mean("quic", "fq_codel") < 50.0, "{rows:?}");
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert!(page.contains("<h2>Over time</h2>") && page.contains("flow 1, which delivered more"));
    assert_eq!(page.matches("smoothed RTT, ms</text>").count(), 6, "three transports before two queues");
    assert!(dir.path().join("r/figures/over-time-2-3.svg").exists());
    assert_eq!(fs::read_dir(dir.path().join("r/series")).unwrap().count(), 6);
}

#[test]
fn series_of_a_comparison_need_an_output_directory() {
    let dir = here();
    let compare = ["compare", "tcp", "sctp", "--workload", "bulk", "--count", "300", "--repetitions", "1"];
    let text = ok(dir.path(), &[&compare[..], &["--series", "5ms", "--out", "kept"]].concat());
    assert!(text.contains("kept contains the results") && text.contains("kbit/s"), "{text}");
    let page = fs::read_to_string(dir.path().join("kept/report.html")).unwrap();
    assert!(page.contains("<h2>Over time</h2>"), "{page}");
    let (code, message) = failure(dir.path(), &[&compare[..], &["--series", "5ms"]].concat());
    assert!(code == 2 && message.contains("--out"), "{message}");
    let (code, message) =
        failure(dir.path(), &[&compare[..], &["--series", "0ms", "--out", "none"]].concat());
    assert!(code == 2 && message.contains("--series 0ms: `series` must be at least 10us"), "{message}");
    assert!(!dir.path().join("none").exists());
}

#[test]
fn help_has_examples_and_list_has_every_name() {
    let help = ok(here().path(), &["--help"]);
    assert!(help.find("hol compare tcp").unwrap() < help.find("Usage:").unwrap());
    let list = ok(here().path(), &["list"]);
    for word in ["ikr53", "simco", "pingpong", "linux-6.12", "sctp"] {
        assert!(list.contains(word), "{word}: {list}");
    }
    let options = ok(here().path(), &["list", "sctp"]);
    for word in ["streams=", "associations", "lifetime", "rto_min=1s"] {
        assert!(options.contains(word), "{word}: {options}");
    }
    let paths = ok(here().path(), &["list", "paths"]);
    assert!(paths.lines().count() > 10 && list.contains("\n  starlink "), "{paths}");
    for (word, said) in [("lte", "Measured: "), ("path", "fq_codel 20ms")] {
        assert!(ok(here().path(), &["help", word]).contains(said), "{word}");
    }
    let (code, message) = failure(here().path(), &["compare", "tcp", "--path", "starlnik"]);
    assert!(code == 2 && message.contains("'starlink'") && message.contains("transatlantic"), "{message}");
    let (code, message) = failure(here().path(), &["list", "stcp"]);
    assert!(code == 2 && message.contains("use one of tcp, sctp"), "{message}");
    let found = ok(here().path(), &["doctor"]);
    for word in ["results here", "kernels", "live:namespaces"] {
        assert!(found.contains(word), "{word}: {found}");
    }
}

#[test]
fn trace_at_a_node_has_only_its_packets() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["trace", "tcp", "--count", "20", "--repetitions", "1", "--loss", "5%"];
    let all = ok(dir.path(), &flags);
    let at = |nodes: &[&str]| ok(dir.path(), &[&flags[..], nodes].concat());
    let of_node = |text: &str, node: &str| {
        let passes = |line: &&str| line.split_whitespace().nth(1).is_some_and(|at| at.starts_with(node));
        text.lines().filter(passes).map(str::to_owned).collect::<Vec<_>>()
    };
    for node in ["client", "server"] {
        let seen = at(&["--at", node]);
        assert_eq!(seen.lines().map(str::to_owned).collect::<Vec<_>>(), of_node(&all, node));
    }
    assert_eq!(at(&["--at", "client", "--at", "server"]), all);
    let whole = at(&["--pcap", "all.pcapng"]);
    let one = at(&["--at", "server", "--pcap", "one.pcapng"]);
    let packets = |said: &str| said.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
    assert!(0 < packets(&one) && packets(&one) < packets(&whole), "{one} of {whole}");
    let (code, message) = failure(dir.path(), &[&flags[..], &["--at", "middle"]].concat());
    assert!(code == 2 && message.contains("use one of client, server"), "{message}");
}

#[test]
#[ignore = "needs tshark"]
fn wireshark_finds_no_malformed_packets_or_wrong_checksums() {
    let dir = here();
    let interleaved = "sctp:streams=8,interleaving,scheduler=rr,lifetime=300ms";
    for transport in ["tcp", "sctp:streams=8", interleaved, "quic:streams=8"] {
        // Few packets of QUIC: Wireshark 4.0 decodes packet number 255 as 511 if it follows 256, contrary to RFC 9000
        // appendix A.3.
        let flags = ["--workload", "simco", "--count", "200", "--repetitions", "1", "--loss", "3%"];
        ok(dir.path(), &[&["trace", transport, "--pcap", "run.pcapng"], &flags[..]].concat());
        let mut tshark = Command::new("tshark");
        tshark.current_dir(dir.path()).args(["-n", "-r", "run.pcapng"]);
        for preference in [
            "ip.check_checksum:TRUE",
            "tcp.check_checksum:TRUE",
            "sctp.checksum:CRC 32c",
            "udp.check_checksum:TRUE",
        ] {
            tshark.args(["-o", preference]);
        }
        tshark.args(["-T", "fields", "-e", "_ws.malformed", "-e", "ip.checksum.status"]);
        tshark.args(["-e", "tcp.checksum.status", "-e", "sctp.checksum.status"]);
        tshark.args(["-e", "udp.checksum.status", "-e", "quic.decryption_failed"]);
        let output = tshark.output().unwrap_or_else(|error| panic!("tshark: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        assert!(lines.lines().count() > 800, "{lines}");
        // No packet is malformed or undecodable; the checksums of IP and of TCP, SCTP or UDP are correct.
        let good = ["\t1\t1\t\t\t", "\t1\t\t1\t\t", "\t1\t\t\t1\t"];
        let bad = lines.lines().find(|line| !good.contains(line));
        assert_eq!(bad, None, "{transport}");
    }
}

#[test]
fn waterfall_shows_a_page_file_by_file() {
    let dir = here();
    let flags = ["--workload", "page", "--count", "3", "--repetitions", "1", "--waterfall"];
    let trace = [&["trace", "tcp"], &flags[..]].concat();
    let text = ok(dir.path(), &[&trace[..], &["2"]].concat());
    assert!(text.starts_with("page 2, 13 files, in "), "{text}");
    let document = text.lines().find(|line| line.trim_start().starts_with("0 ")).expect("a document");
    assert!(
        document.contains(".=") && document.contains("s="),
        "it waits for a connection and a window: {document}"
    );
    assert!(text.contains("H head-of-line wait"), "{text}");
    assert!(ok(dir.path(), &trace).starts_with("page "), "the page of the median time");
    let (code, message) = failure(dir.path(), &[&trace[..], &["4"]].concat());
    assert!(code == 2 && message.contains("has 3 pages, counted from 1"), "{message}");
    let (code, message) = failure(dir.path(), &["trace", "tcp", "--waterfall"]);
    assert!(code == 2 && message.contains("use --workload page"), "{message}");
}

#[test]
fn a_run_of_an_experiment_file_can_be_traced() {
    let dir = here();
    let text =
        "transports = ['tcp']\nmessages = 20\nrepetitions = 2\n[sweep]\n'network.loss' = ['0%', '1%']\n";
    fs::write(dir.path().join("a.toml"), text).unwrap();
    let trace = ["trace", "--experiment", "a.toml", "--point", "1", "--repetition"];
    ok(dir.path(), &[&trace[..], &["1"]].concat());
    let (code, message) = failure(dir.path(), &[&trace[..], &["2"]].concat());
    assert!(code == 2 && message.contains("the first is number 0"), "{message}");
    let elsewhere = ok(dir.path(), &[&trace[..], &["1", "--delay", "30ms", "--seed", "7"]].concat());
    assert!(
        elsewhere.lines().nth(1).unwrap().starts_with("0.0300"),
        "a flag goes over the file: {elsewhere}"
    );
    let (_, message) = failure(dir.path(), &[&trace[..], &["1", "--world", "nowhere"]].concat());
    assert!(message.contains("--world nowhere"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn unwritable_output_is_a_failure() {
    for arguments in [&["list"][..], &["compare", "tcp", "--count", "20", "--json"]] {
        // Every write to this device fails as on a full disk.
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(program::BIN).args(arguments).stdout(full).output().unwrap();
        assert_eq!(program::code(&output), 1, "{arguments:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("error: standard output: cannot write"), "{message}");
    }
}

#[test]
fn comparison_without_completed_messages_has_no_conclusion() {
    let flags = ["--loss", "100%", "--count", "20", "--repetitions", "2"];
    let text = ok(here().path(), &[&["compare", "tcp", "sctp"], &flags[..]].concat());
    assert!(text.contains("\nnothing completed over sctp, so there is no comparison\n"), "{text}");
    assert!(!text.contains("NaN"), "{text}");
}

#[test]
fn binary_files_are_refused_with_a_remedy() {
    let dir = here();
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::write(dir.path().join("a.toml"), b"title = '\xff'\n").unwrap();
    for (file, exit, cure) in [("folder", 1, "name a file in it"), ("a.toml", 2, "save it as UTF-8")] {
        let (code, message) = failure(dir.path(), &["run", file]);
        assert!(code == exit && message.contains(cure), "{message}");
    }
}

#[test]
fn closed_pipe_is_not_a_failure() {
    let dir = here();
    fs::write(
        dir.path().join("a.ns"),
        "set ns [new Simulator]\nset client [$ns node]\nset server [$ns node]\n\
        $ns duplex-link $client $server 1Mb 1ms DropTail\nputs hello\n",
    )
    .unwrap();
    fs::write(dir.path().join("a.toml"), "transports = ['tcp']\ntopology = 'a.ns'\nmessages = 20\n").unwrap();
    for (arguments, code) in [
        (&["run", "a.toml"][..], 0),
        (&["run", "a.toml", "--plan"], 0),
        (&["run", "none.toml"], 1),
        (&["list"], 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(program::BIN);
        let child = command
            .current_dir(dir.path())
            .args(arguments)
            .stdout(writer.try_clone().unwrap())
            .stderr(writer);
        assert_eq!(child.status().unwrap().code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn rate_beyond_the_clock_resolution_is_refused_at_its_position() {
    let dir = here();
    fs::write(dir.path().join("a.toml"), "transports = ['tcp']\nmessages = 20\n[workload]\nkind = 'simco'\n")
        .unwrap();
    let (code, problem) = failure(dir.path(), &["run", "a.toml", "--set", "workload.rate=99999999999/s"]);
    assert!(
        code == 2 && problem.contains("--set workload.rate=99999999999/s: ") && problem.contains("at most"),
        "{problem}"
    );
    ok(dir.path(), &["run", "a.toml", "--set", "workload.rate=1000000000/s"]);
}

#[test]
fn error_of_a_flag_names_the_flag() {
    let dir = here();
    let (code, problem) = failure(dir.path(), &["compare", "tcp", "--workload", "echo", "--size", "0B"]);
    assert!(
        code == 2 && problem.starts_with("error: --size 0B: ") && !problem.contains("simco"),
        "{problem}"
    );
}

#[test]
fn change_of_the_path_after_the_end_of_the_runs_is_a_warning() {
    let dir = here();
    for (network, what) in [
        ("events = [{ at = '500s', down = true }]", Some("the network goes down at 500 s")),
        (
            "events = [{ at = '0s', rate = '5Mbit' }, { at = '400s', rate = '1Mbit' }]",
            Some("the first change of the path at 400 s"),
        ),
        ("events = [{ at = '50ms', rate = '5Mbit' }, { at = '400s', rate = '9Mbit' }]", None),
        ("paths = [{}, {}]\nhandover.at = '70s'", Some("the client attaches to path 2 at 70.0 s")),
    ] {
        let text = format!(
            "transports = ['tcp', 'sctp']\nmessages = 400\nworkload.kind = 'echo'\n[network]\n{network}"
        );
        fs::write(dir.path().join("late.toml"), text).unwrap();
        let table = ok(dir.path(), &["run", "late.toml", "--out", "late"]);
        let warned = table.contains("has no effect, because the runs end after");
        assert_eq!(warned, what.is_some(), "{network}: {table}");
        assert!(what.is_none_or(|what| table.contains(what)), "{network}: {table}");
        fs::remove_dir_all(dir.path().join("late")).unwrap();
    }
}

#[test]
fn missed_precision_is_a_warning() {
    let dir = here();
    let text = "transports = ['tcp']\nmessages = 60\nrepetitions = '2..3'\nprecision = '0.001%'\n[network]\nloss = '5%'\n";
    fs::write(dir.path().join("a.toml"), text).unwrap();
    let plan = ok(dir.path(), &["run", "a.toml", "--plan"]);
    assert!(plan.contains(" 60 to 90 messages: about "), "{plan}");
    let table = ok(dir.path(), &["run", "a.toml", "--out", "out"]);
    assert!(table.contains(" after 3 repetitions; 0.001% was requested"), "{table}");
    let points: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("out/points.json")).unwrap()).unwrap();
    assert_eq!((&points[0]["precise"], &points[0]["repetitions"]), (&false.into(), &3.into()));
    let row = &rows(&ok(dir.path(), &["run", "a.toml", "--out", "out", "--json"]))[0];
    assert_eq!(row["precise"], false);
}

/// Runs the program with `input` on standard input; it must succeed.
fn piped(dir: &Path, arguments: &[&str], input: &str) -> std::process::Output {
    let mut command = Command::new(program::BIN);
    let command = command.current_dir(dir).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn dash_means_standard_input_or_output() {
    let dir = here();
    let good = piped(dir.path(), &["run", "-", "--json"], "transports = ['tcp']\nmessages = 50\n");
    assert_eq!(rows(&String::from_utf8(good.stdout).unwrap()).len(), 1);
    assert!(dir.path().join("results/stdin/points.csv").exists());
    let bad = piped(dir.path(), &["run", "-"], "transports = ['tcp']\nmesages = 50\n");
    let problem = String::from_utf8(bad.stderr).unwrap();
    assert!(problem.starts_with("error: <stdin>:2:1: ") && bad.status.code() == Some(2), "{problem}");

    let question = ["trace", "tcp", "--count", "5", "--repetitions", "1"];
    let kept = ok(dir.path(), &[&question[..], &["--pcap", "kept"]].concat());
    assert!(kept.starts_with("kept: "), "{kept}");
    let shown = program::hol(dir.path(), &[&question[..], &["--pcap", "-"]].concat());
    assert_eq!(shown.stdout, fs::read(dir.path().join("kept")).unwrap(), "the capture and nothing else");
    assert!(String::from_utf8(shown.stderr).unwrap().contains(" packets of hol compare: tcp"));
    let lines = ok(dir.path(), &[&question[..], &["--ns2", "-"]].concat());
    assert!(lines.lines().all(|line| "+-rd".contains(&line[..1])), "{lines}");
    assert!(!dir.path().join("-").exists());
}

/// The reader of quiche (crate qlog 0.15) reads these files, and qvis draws them.
#[test]
fn qlog_has_packets_of_both_ends_and_congestion_windows() {
    let dir = here();
    let question = ["trace", "quic:connections=2", "--count", "200", "--repetitions", "1", "--loss", "5%"];
    let said = ok(dir.path(), &[&question[..], &["--qlog", "run.qlog"]].concat());
    assert!(said.starts_with("run.qlog: ") && said.contains(" packets of hol compare: quic"), "{said}");
    let text = fs::read_to_string(dir.path().join("run.qlog")).unwrap();
    assert!(text.starts_with("{\"qlog_version\": \"0.3\""), "{text}");
    let log: serde_json::Value = serde_json::from_str(&text).unwrap();
    let traces = log["traces"].as_array().unwrap();
    let titles: Vec<&str> = traces.iter().map(|trace| trace["title"].as_str().unwrap()).collect();
    assert_eq!(
        titles,
        ["connection 0, client", "connection 1, client", "connection 0, server", "connection 1, server"]
    );
    let numbers = |trace: &serde_json::Value, name: &str| -> Vec<u64> {
        let events = trace["events"].as_array().unwrap().iter();
        let packets = events.filter(|event| event["name"] == name).map(|event| &event["data"]["header"]);
        let data = packets.filter(|header| header["packet_type"] == "1RTT");
        data.map(|header| header["packet_number"].as_u64().unwrap()).collect()
    };
    for pair in [[0, 2], [1, 3], [2, 0], [3, 1]] {
        let [sender, receiver] = pair.map(|index| &traces[index]);
        let (sent, received) =
            (numbers(sender, "transport:packet_sent"), numbers(receiver, "transport:packet_received"));
        // RFC 9000 section 12.3: packet numbers increase, and none is used again.
        assert!(sent.is_sorted_by(|a, b| a < b) && received.len() > 20, "{sent:?}");
        assert!(received.iter().all(|number| sent.contains(number)) && received.len() < sent.len());
        let events = sender["events"].as_array().unwrap();
        assert!(events.is_sorted_by_key(|event| event["time"].as_f64().unwrap()));
        let drops = events.iter().filter(|event| event["name"] == "generic:marker").count();
        assert!(drops >= sent.len() - received.len(), "{drops} drops of {} packets", sent.len());
        assert!(events.iter().any(|event| event["data"]["congestion_window"].as_u64() > Some(1200)));
    }
    let elsewhere = ["trace", "quic", "--count", "5", "--repetitions", "1", "--world", "live", "--qlog", "-"];
    let refused = program::hol(dir.path(), &elsewhere);
    let problem = String::from_utf8(refused.stderr).unwrap();
    assert!(
        problem.contains("the live world cannot capture packets; use --world model or kernel")
            && refused.status.code() == Some(2),
        "{problem}"
    );
}

#[test]
fn init_writes_the_experiment_of_compare() {
    let dir = here();
    for question in [
        &["tcp", "sctp:streams=8", "--loss", "1%", "--rate", "500/s", "--count", "300"][..],
        &[
            "tcp",
            "--workload",
            "echo",
            "--size",
            "300B",
            "--delay",
            "3ms",
            "--count",
            "100",
            "--set",
            "network.jitter=1ms",
        ],
        &[
            "sctp",
            "--mix",
            "enable=2,delete=1",
            "--queue",
            "20p",
            "--count",
            "100",
            "--seed",
            "7",
            "--repetitions",
            "2",
        ],
        &["tcp", "--count", "40", "--set", "network.loss={drop=[3,4]}", "--set", "background=[{count=2}]"],
        &["tcp", "--count", "40", "--set", "network.up.delay=7ms", "--set", "hosts.server.filter=none"],
    ] {
        let digests = |command: &[&str]| -> Vec<Value> {
            rows(&ok(dir.path(), command)).iter().map(|row| row["digest"].clone()).collect()
        };
        let text = ok(dir.path(), &[&["init"], question].concat());
        let _ = fs::remove_file(dir.path().join("mine.toml"));
        ok(dir.path(), &[&["init", "mine.toml"], question].concat());
        assert_eq!(fs::read_to_string(dir.path().join("mine.toml")).unwrap(), text);
        let _ = fs::remove_dir_all(dir.path().join("out"));
        let answer = digests(&["run", "mine.toml", "--json", "--out", "out"]);
        assert_eq!(answer, digests(&[&["compare", "--json"], question].concat()), "{text}");
    }
    let (code, problem) = failure(dir.path(), &["init", "mine.toml", "tcp"]);
    assert!(code == 2 && problem.contains("mine.toml: already exists"), "{problem}");
    let (_, problem) = failure(dir.path(), &["init", "tpc"]);
    assert!(problem.contains("unknown transport"), "{problem}");
}

#[test]
fn every_commented_key_of_init_can_be_enabled() {
    let dir = here();
    let is_comment = |line: &&str| line.starts_with("# ") && line.contains(" = ") && !line.ends_with('.');
    let runs = |line: &str| {
        let skipped = ["precision", "world", "topology"].map(|key| format!("# {key} = "));
        !skipped.iter().any(|key| line.contains(key)) && !line.contains("network.loss")
    };
    for kind in ["rpc", "simco", "echo", "pingpong", "oneway", "bulk", "page", "media", "files"] {
        let text = ok(dir.path(), &["init", "--workload", kind]);
        for line in text.lines().filter(is_comment) {
            let with = text.replace(line, &line[2..]);
            assert!(toml::from_str::<toml::Table>(&with).is_ok(), "{kind}: {line}");
            if runs(line) {
                let experiment = Experiment::parse("t", &Source::new("t.toml", with));
                assert!(experiment.is_ok(), "{kind}: {line}: {:?}", experiment.err());
            }
        }
    }
}

#[test]
fn commands_with_tables_also_print_json() {
    let dir = here();
    fs::write(
        dir.path().join("mine.toml"),
        "transports = ['tcp', 'udp']\n[sweep]\n'network.loss' = ['0%', '1%']\n",
    )
    .unwrap();
    let plan = rows(&ok(dir.path(), &["run", "mine.toml", "--plan", "--json"]));
    assert_eq!(plan.len(), 4);
    assert_eq!((&plan[1]["axes"]["network.loss"], &plan[3]["index"]), (&Value::from("1%"), &Value::from(3)));
    let listed = rows(&ok(dir.path(), &["list", "--json"]));
    let has = |what: &str, name: &str| listed.iter().any(|row| row["what"] == what && row["name"] == name);
    assert!(
        has("study", "ikr53")
            && has("workload", "echo")
            && has("stack", "linux-6.12")
            && has("option", "rto_min")
    );
    ok(dir.path(), &["run", "mine.toml", "--set", "messages=100", "--out", "out", "--json"]);
    let verified = rows(&ok(dir.path(), &["verify", "out", "--json"]));
    assert_eq!((verified.len(), &verified[0]["differences"]), (1, &Value::from(Vec::<Value>::new())));
}
