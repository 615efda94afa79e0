//! Networks from ns scripts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{self, failure, ok};

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

#[test]
fn script_is_drawn_listed_and_written_losslessly() {
    let dir = tempfile::tempdir().unwrap();
    let script = experiments().join("testlink.ns");
    let script = script.to_str().unwrap();
    let text = ok(dir.path(), &["topology", script, "--svg", "a.svg", "--ns", "again.ns"]);
    for words in
        ["testlink  server 10.1.1.2 ─── 10.1.1.3 client", "Virtual Lan/Link Info:", "12.50", "Ignored:"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(fs::read_to_string(dir.path().join("a.svg")).unwrap().contains("testlink"));
    let again = ok(dir.path(), &["topology", "again.ns", "--ns", "-"]);
    assert_eq!(again, fs::read_to_string(dir.path().join("again.ns")).unwrap());
    let experiment = experiments().join("testlink.toml");
    assert!(ok(dir.path(), &["topology", experiment.to_str().unwrap()]).contains("400kbit · 25ms · 6p"));
}

#[test]
fn experiment_on_a_script_lists_ignored_commands() {
    let dir = tempfile::tempdir().unwrap();
    let script = fs::read_to_string(experiments().join("testlink.ns")).unwrap();
    fs::write(dir.path().join("testlink.ns"), script).unwrap();
    let text = "transports = ['tcp']\nmessages = 20\nrepetitions = 2\ntopology = 'testlink.ns'\n\
                [workload]\nkind = 'oneway'\nrate = '20/s'\n[sweep]\n'network.links.testlink.delay' = ['25ms', '75ms']\n";
    fs::write(dir.path().join("a.toml"), text).unwrap();
    let run = program::hol(dir.path(), &["run", "a.toml", "--json"]);
    let rows = String::from_utf8(run.stdout).unwrap();
    let medians =
        rows.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap()["p50_ms"].as_f64());
    let [near, far] = medians.map(Option::unwrap).collect::<Vec<_>>()[..] else { panic!("{rows}") };
    assert!((far - near - 50.0).abs() < 0.1, "{near} {far}");
    assert!(String::from_utf8(run.stderr).unwrap().contains("ignored: testlink.ns:3: source tb_compat.tcl"));
}

#[test]
fn script_error_names_line_and_word() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bad.ns"), "set ns [new Simulator]\nset a [$ns nod]\n").unwrap();
    let (code, message) = failure(dir.path(), &["topology", "bad.ns"]);
    assert_eq!(
        (code, &*message),
        (2, "error: bad.ns:2:12: unknown command \"nod\"; did you mean \"node\"?\n")
    );
    let (code, message) = failure(dir.path(), &["topology", "none.ns"]);
    assert!(code == 1 && message.contains("cannot read"), "{message}");
}

/// Two nodes, packets at a constant rate over UDP, and a procedure that would start another program.
const TUTORIAL: &str = "set ns [new Simulator]\nset nf [open out.nam w]\n$ns namtrace-all $nf\n\
    proc finish {} {\n  global ns nf\n  $ns flush-trace\n  close $nf\n  exec nam out.nam &\n  exit 0\n}\n\
    set n0 [$ns node]\nset n1 [$ns node]\n$ns duplex-link $n0 $n1 1Mb 10ms DropTail\n\
    set udp0 [new Agent/UDP]\n$ns attach-agent $n0 $udp0\nset cbr0 [new Application/Traffic/CBR]\n\
    $cbr0 set packetSize_ 500\n$cbr0 set interval_ 0.005\n$cbr0 attach-agent $udp0\nset null0 [new Agent/Null]\n\
    $ns attach-agent $n1 $null0\n$ns connect $udp0 $null0\n$ns at 0.5 \"$cbr0 start\"\n$ns at 4.5 \"$cbr0 stop\"\n\
    $ns at 5.0 \"finish\"\n$ns run\n";

#[test]
fn script_with_traffic_runs_without_touching_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("example.ns"), TUTORIAL).unwrap();
    let run = program::hol(dir.path(), &["run", "example.ns", "--json"]);
    let row: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&row["transport"], &row["offered"], &row["failed"]), (&"udp".into(), &801.into(), &0.into()));
    // 500 octets at 1 Mbit/s are 4 ms, and the link has 10 ms.
    assert_eq!(row["p50_ms"], 14.0);
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("ignored: example.ns:2: open out.nam w: scripts cannot open files"), "{said}");
    assert!(!dir.path().join("out.nam").exists());
    let tcp =
        ok(dir.path(), &["run", "example.ns", "--json", "--out", "tcp", "--set", "transports=[\"tcp\"]"]);
    assert!(tcp.contains("\"transport\":\"tcp\""), "{tcp}");

    fs::write(
        dir.path().join("other.ns"),
        TUTORIAL.replace("Agent/UDP", "Agent/DCCP").replace("$ns run", "$ns rnu"),
    )
    .unwrap();
    let (code, problem) = failure(dir.path(), &["run", "other.ns"]);
    let lines: Vec<&str> = problem.lines().collect();
    assert!(code == 2 && lines.len() == 2, "{problem}");
    assert!(
        lines[0].starts_with("error: other.ns:14:15: \"Agent/DCCP\"") && lines[1].contains("other.ns:26:5: "),
        "{problem}"
    );
}

#[test]
fn tc_script_is_refused_for_a_path_with_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("lte.csv"), "time_s,rate_kbit\n0,8000\n3,2000\n6,8000\n").unwrap();
    for start in ["", "trace_start = 'random'"] {
        let text = format!("transports = ['tcp']\n[network]\ntrace = 'lte.csv'\n{start}");
        fs::write(dir.path().join("a.toml"), text).unwrap();
        let (_, message) = failure(dir.path(), &["topology", "a.toml", "--tc", "a.sh"]);
        assert!(message.contains("tc cannot express a path that changes"), "{start}: {message}");
    }
}

/// Many scripts of ns-2 are called NAME.tcl, and an old one creates its simulator in another file.
#[test]
fn script_is_recognised_by_its_extension_or_its_text() {
    let dir = tempfile::tempdir().unwrap();
    let traffic = TUTORIAL.replace("set ns [new Simulator]\n", "source sim.tcl\n");
    for (name, text) in
        [("chain.tcl", &*traffic), ("chain", TUTORIAL), ("sim.tcl", "set ns [new Simulator]\n")]
    {
        fs::write(dir.path().join(name), text).unwrap();
    }
    for name in ["chain.tcl", "chain"] {
        assert!(
            ok(dir.path(), &["run", name, "--json", "--out", &format!("{name}.out")])
                .contains("\"offered\":801")
        );
        let packets = ok(dir.path(), &["trace", name]);
        assert!(packets.contains("UDP") || packets.lines().count() > 800, "{packets}");
    }
    fs::write(dir.path().join("experiment"), "transports = ['tcp']\n").unwrap();
    assert!(ok(dir.path(), &["topology", "experiment"]).contains("server"));
    fs::write(dir.path().join("empty.tcl"), "set x 5\n").unwrap();
    let (code, message) = failure(dir.path(), &["run", "empty.tcl"]);
    assert!(code == 2 && !message.contains("key with no value"), "{message}");
    let (_, message) = failure(dir.path(), &["trace", "none.tcl"]);
    assert!(message.contains("none.tcl: cannot read"), "{message}");
}

#[test]
fn file_of_another_tool_is_named_wherever_it_is_given() {
    let dir = tempfile::tempdir().unwrap();
    for (name, octets) in [
        ("net.py", &b"from mininet.net import Mininet\n"[..]),
        ("a.json", b"{\"start\": {\"test_start\": {}}, \"intervals\": []}"),
        ("a.gz", b"\x1f\x8b\x08\0\xff"),
        ("a.bz2", b"BZh91AY&SY\xff"),
        ("a.xz", b"\xfd7zXZ\0"),
    ] {
        fs::write(dir.path().join(name), octets).unwrap();
    }
    for (name, words) in [
        ("net.py", "is a script of Mininet"),
        ("a.json", "is a result of iperf3"),
        ("a.bz2", "bzip2 -d"),
        ("a.xz", "xz -d"),
    ] {
        fs::write(dir.path().join("t.toml"), format!("transports = ['tcp']\ntopology = '{name}'\n")).unwrap();
        for command in [&["topology", name][..], &["run", name], &["run", "t.toml"]] {
            let (code, message) = failure(dir.path(), command);
            assert!(code == 2 && message.contains(words) && message.contains(name), "{command:?}: {message}");
        }
    }
    for command in [&["topology", "a.gz"][..], &["run", "a.gz"]] {
        let (code, message) = failure(dir.path(), command);
        assert!(
            code == 2 && message.contains("a.gz: is compressed by gzip; decompress it with `gunzip`"),
            "{message}"
        );
    }
    // Files that an experiment names are decompressed.
    fs::write(dir.path().join("t.toml"), "transports = ['tcp']\n[network]\ntrace = 'a.gz'\n").unwrap();
    let (_, message) = failure(dir.path(), &["run", "t.toml"]);
    assert!(
        message.contains("cannot read ") && message.contains("a.gz: the compressed file ends too early"),
        "{message}"
    );
}

/// What `hol path tc` prints for a line can be written as tc lines again.
#[test]
fn network_of_tc_lines_is_written_as_tc_lines() {
    let dir = tempfile::tempdir().unwrap();
    let line = "qdisc add dev eth0 root netem delay 50ms 10ms 25% loss gemodel 1% 10% limit 1000 rate 10mbit";
    let network = ok(dir.path(), &["path", "tc", line]);
    fs::write(dir.path().join("a.toml"), format!("transports = ['tcp']\n{network}")).unwrap();
    let script = ok(dir.path(), &["topology", "a.toml", "--tc", "-"]);
    assert!(
        script.contains("netem delay 50000us 10000us 25% ") && script.contains("loss gemodel 1% 10% "),
        "{script}"
    );
    assert!(script.contains("# netem hardly correlates"), "{script}");
}

/// Two FTP sources: the first is measured, and the results show both.
#[test]
fn every_flow_of_a_script_is_in_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let ftp = |number: u32, from: &str, to: &str| {
        format!(
            "set t{number} [new Agent/TCP]\nset s{number} [new Agent/TCPSink]\n$ns attach-agent ${from} $t{number}\n\
             $ns attach-agent ${to} $s{number}\n$ns connect $t{number} $s{number}\nset f{number} [new Application/FTP]\n\
             $f{number} attach-agent $t{number}\n$ns at 0.5 \"$f{number} start\"\n"
        )
    };
    let script = format!(
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 10ms DropTail\n{}{}\
         $ns at 3 \"exit 0\"\n$ns run\n",
        ftp(1, "a", "b"),
        ftp(2, "b", "a")
    );
    fs::write(dir.path().join("two.tcl"), script).unwrap();
    let text = ok(dir.path(), &["run", "two.tcl", "--out", "out"]);
    let flows: Vec<&str> =
        text.lines().filter(|line| line.contains(" to ") && line.contains("tcp")).collect();
    assert!(flows.len() == 2 && flows[0].contains("a to b") && flows[1].contains("b to a"), "{text}");
    for flow in flows {
        let kbps: f64 = flow.split_whitespace().next_back().unwrap().parse().unwrap();
        assert!((700.0..1000.0).contains(&kbps), "{flow}");
    }
}
