//! The user's own programs in the kernel world.
//!
//! Tests for both engines run in User-Mode Linux, and nightly in QEMU. Nightly is sufficient, because the frequent
//! tests of QEMU's speed, digests and shell detect changes of that engine.

use std::path::Path;
use std::process::Command;

use crate::program::{failure, ok};
use serde_json::Value;

fn exec(directory: &Path, arguments: &[&str]) -> Vec<Value> {
    let text = ok(directory, &[&["exec", "--json"], arguments].concat());
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// A file of 100 kB from nginx, over one connection without loss: an initial window of ten segments (RFC 6928) doubles
/// each round trip, so that 70 segments take three round trips; with the handshake, 80 ms, plus the emulated
/// processor's time.
fn page_loads_repeatably_over_each_transport(world: &str) {
    let line =
        [
            &[
                "tcp",
                "mptcp",
                "sctp",
                "--repetitions=2",
                "--loss=1%",
                "--server=nginx",
                "--listens=80",
                world,
            ][..],
            &["--measure=transaction", "--file=/var/www/html/page=100kB"],
            &["--", "curl", "-sfo", "/dev/null", "http://server/page", "http://server/page"],
        ]
        .concat();
    let [first, again] = [(); 2].map(|()| exec(Path::new("."), &line));
    check(&first, &again);
}

fn check(first: &[Value], again: &[Value]) {
    for (row, same) in first.iter().zip(again) {
        assert_eq!(row["digest"], same["digest"], "{row}");
        assert_eq!((row["completed"].as_u64(), row["failed"].as_u64()), (Some(4), Some(0)), "{row}");
        assert!((60.0..=2000.0).contains(&number(row, "mean_ms")), "{row}");
    }
    let digests: Vec<_> = first.iter().map(|row| row["digest"].as_str().unwrap()).collect();
    assert!(digests[0] != digests[1] && digests[1] != digests[2], "{digests:?}");
}

/// Without loss a request over an established connection takes a round trip; the program reports the same time as its
/// packets.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), nginx, curl and mkfs.erofs (erofs-utils)"]
fn requests_from_packets_equal_the_programs_own_times() {
    let directory = tempfile::tempdir().unwrap();
    let experiment = "world = 'kernel:uml'\ntransports = ['tcp']\nrepetitions = 1\n\
        [network]\ndelay = '25ms'\n\
        [workload]\nkind = 'programs'\nmeasure = 'transaction'\n\
        [[program]]\nnode = 'server'\ncommand = 'nginx'\nready = { listens = 80 }\n\
        files.'/var/www/html/a' = { text = 'short' }\n\
        [[program]]\nnode = 'client'\n\
        command = ['curl', '-sf', '-o', '/dev/null', '-w', '%{time_total} ', 'http://server/a', '-o', '/dev/null', 'http://server/a']\n";
    std::fs::write(directory.path().join("x.toml"), experiment).unwrap();
    let text = ok(directory.path(), &["run", "x.toml", "--out", "out", "--json"]);
    let row: Value = serde_json::from_str(text.trim()).expect(&text);
    assert_eq!(row["completed"].as_u64(), Some(2), "{row}");
    assert!((50.0..51.0).contains(&number(&row, "mean_ms")), "{row}");
    let journal = std::fs::read_to_string(directory.path().join("out/runs.jsonl")).unwrap();
    let run: Value = journal.lines().map(|line| serde_json::from_str(line).unwrap()).next_back().unwrap();
    let client = &run["facts"]["programs"][1];
    assert_eq!(client["status"], "exit 0", "{client}");
    let said: Vec<f64> =
        client["stdout"].as_str().unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    // The second request uses the connection of the first, and curl computes a little.
    assert!((0.050..0.055).contains(&said[1]) && (0.100..0.115).contains(&said[0]), "{said:?}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), mkfs.erofs (erofs-utils)"]
fn programs_see_only_their_node() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("given.txt"), "hello\n").unwrap();
    std::fs::write(directory.path().join("secret"), "").unwrap();
    let script = "hostname; cat given.txt; grep -c server /etc/hosts; ls; touch /etc/new && echo written; \
        cat /proc/[0-9]*/comm | sort -u | tr '\\n' ' '";
    let text = ok(
        directory.path(),
        &[
            "exec",
            "tcp",
            "--world=kernel:uml",
            "--repetitions=1",
            "--server=sleep 999",
            "--",
            "sh",
            "-c",
            script,
        ],
    );
    // A guest sees its own processes and the first one, but not the server's `sleep`.
    for line in ["client", "hello", "1", "given.txt", "written"] {
        assert!(text.contains(&format!("stdout | {line}\n")), "{line}: {text}");
    }
    assert!(text.contains("stdout | cat exe sh ") && !text.contains("sh sleep"), "{text}");
    assert!(!text.contains("secret") && !Path::new("/etc/new").exists(), "{text}");
}

/// Programs cannot reach the host through the file system of User-Mode Linux, through devices, or through the first process.
fn programs_cannot_reach_this_machine(world: &str) {
    let script = "mkdir /x; mount -t hostfs -o /../../../../.. x /x && ls /x; mount -t tmpfs t /x && echo mounted; \
        mknod /x/mem c 1 1 && echo made; ls /dev/mem /dev/port /dev/pmem0 /host /proc/1/root; ls -d /dev/null /dev/fd";
    let line = ["exec", "tcp", "--repetitions=1", world, "--", "sh", "-c", script];
    let text = ok(Path::new("."), &line);
    let printed = text.lines().filter(|line| line.contains("stdout |"));
    let printed: Vec<_> = printed.map(|line| line.trim().trim_start_matches("stdout | ")).collect();
    assert_eq!(printed, ["/dev/fd", "/dev/null"], "{world}: {text}");
}

/// The clock of User-Mode Linux is the guest's, with 1 GHz, and random numbers of the host are hidden where possible.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), /usr/bin/python3 and mkfs.erofs (erofs-utils)"]
fn processor_reveals_nothing_of_this_machine() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("processor.py"), include_str!("processor.py")).unwrap();
    let line =
        ["exec", "tcp", "--repetitions=1", "--world=kernel:uml", "--", "/usr/bin/python3", "processor.py"];
    let text = ok(directory.path(), &line);
    let tells = |what: &str| {
        let (_, rest) = text.split_once(&format!("| {what} ")).unwrap_or_else(|| panic!("{what}: {text}"));
        rest.lines().next().unwrap().parse::<u64>().unwrap()
    };
    for clock in ["rdtsc", "rdtscp"] {
        assert!((1_000_000_000..1_000_100_000).contains(&tells(clock)), "{text}");
    }
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    if processors.split_whitespace().any(|flag| flag == "cpuid_fault") {
        assert_eq!(tells("rdrand"), 0, "{text}");
    }
}

/// In QEMU a nanosecond is eight instructions of a program, from the first one after the snapshot on; sleeping takes
/// the requested time.
#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch), /usr/bin/python3 and mkfs.erofs (erofs-utils)"]
fn processor_of_qemu_has_the_recorded_speed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("pace.py", include_str!("pace.py"));
    write("pace.toml", include_str!("pace.toml"));
    ok(directory.path(), &["run", "pace.toml", "--out", "out"]);
    let run = std::fs::read_to_string(directory.path().join("out/runs.jsonl")).unwrap();
    let run: Value = serde_json::from_str(run.lines().next().unwrap()).unwrap();
    let provenance = run["facts"]["provenance"].as_str().unwrap();
    assert!(provenance.ends_with(", 8 instructions a ns"), "{provenance}");
    let metrics = &run["facts"]["programs"][0]["metrics"];
    for (metric, min) in [("computed", 10_000_000.0), ("slept", 100_000_000.0)] {
        let took = number(metrics, metric);
        assert!((min..min + 200_000.0).contains(&took), "{metric}: {took} ns, {provenance}");
    }
}

/// The extended registers of a program are preserved across signals, forks and thread switches, although the host's
/// process holds them.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), /usr/bin/python3 and mkfs.erofs (erofs-utils)"]
fn program_keeps_its_extended_registers() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("registers.py"), include_str!("registers.py")).unwrap();
    let line =
        ["exec", "tcp", "--repetitions=1", "--world=kernel:uml", "--", "/usr/bin/python3", "registers.py"];
    let text = ok(directory.path(), &line);
    for what in ["call", "signal", "fork", "child", "threads", "alone"] {
        assert!(text.contains(&format!("| {what} kept")), "{what}: {text}");
    }
}

fn service_lasts_as_long_as_its_workload(world: &str) {
    let directory = tempfile::tempdir().unwrap();
    let experiment = "transports = ['tcp']\nmessages = 100\nrepetitions = 1\n[workload]\nkind = 'echo'\nrate = '50/s'\n\
        [[program]]\nnode = 'server'\ncommand = ['sleep', '1000']\nready = { after = '0s' }\n";
    std::fs::write(directory.path().join("x.toml"), experiment).unwrap();
    let text = ok(directory.path(), &["run", "x.toml", world, "--out", "out", "--json"]);
    let row: Value = serde_json::from_str(text.trim()).expect(&text);
    assert_eq!(row["completed"].as_u64(), Some(100), "{row}");
    let journal = std::fs::read_to_string(directory.path().join("out/runs.jsonl")).unwrap();
    let run: Value = serde_json::from_str(journal.lines().next_back().unwrap()).unwrap();
    let service = &run["facts"]["programs"][0];
    let ended: hol_base::Duration = service["ended"].as_str().unwrap().parse().unwrap();
    // A hundred messages, 50 per second; the program is stopped after the last reply.
    assert!((1.98..2.5).contains(&ended.as_secs_f64()), "{world}: {service}");
    assert_eq!(service["status"], "signal 15");
    std::fs::remove_dir_all(directory.path().join("out")).unwrap();
}

/// The output of curl agrees with its packets, and the files of /out are as the program wrote them.
fn printed_numbers_are_metrics_and_written_files_are_kept(world: &str) {
    let directory = tempfile::tempdir().unwrap();
    let written = r#"took %{time_total} s\n{"size": %{size_download}}\n"#;
    let line = [
        &["tcp", "sctp", "--repetitions=2", "--server=nginx", "--listens=80", world, "--out=out"][..],
        &["--file=/var/www/html/page=100kB", "--metric=took[s]=took ([0-9.]+) s"],
        &["--metric=size[octets]=json:$.size", "--metric=luck=luck: ([0-9]+)"],
        &["--", "curl", "-sfo", "/out/new/page", "--create-dirs", "-w", written, "http://server/page"],
    ]
    .concat();
    for row in exec(directory.path(), &line) {
        let metrics = &row["metrics"];
        assert_eq!(metrics["size"]["runs"], serde_json::json!([100_000.0, 100_000.0]), "{row}");
        assert_eq!(metrics["luck"]["mean"], Value::Null, "{row}");
        let (took, whole) = (1000.0 * number(&metrics["took"], "mean"), number(&row, "mean_ms"));
        // In addition curl starts and ends, which takes the emulated processor about 40 ms.
        assert!(took > 60.0 && took <= whole && whole - took < 80.0, "{took} of {whole} ms: {row}");
    }
    let runs: Vec<_> = std::fs::read_dir(directory.path().join("out")).unwrap().collect();
    assert_eq!(runs.len(), 4);
    for run in runs {
        let page = std::fs::metadata(run.unwrap().path().join("client/new/page")).unwrap();
        assert_eq!(page.len(), 100_000);
    }
    std::fs::remove_dir_all(directory.path().join("out")).unwrap();
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), mkfs.erofs (erofs-utils)"]
fn failure_of_a_program_is_reported() {
    let line = |command: &[&'static str]| {
        [&["exec", "tcp", "--world=kernel:uml", "--repetitions=1"], command].concat()
    };
    for (command, exit, words) in [
        (&["--", "no-such-program"][..], 2, ["no-such-program", "install it"]),
        (&["--server=false", "--listens=80", "--", "true"], 1, ["\"false\" on server", "exit 1"]),
        (&["--server=sleep 99", "--listens=80", "--", "true"], 1, ["sleep 99", "not ready after 30 s"]),
        (&["--root=/", "--", "true"], 2, ["whole machine", "host"]),
        (&["--file=page=1kB", "--", "true"], 2, ["absolute path", "/srv/page.html"]),
        (&["--metric=x=a(", "--", "true"], 2, ["without closing ')'", "regex = \"a(\""]),
        (&["--metric=x[ms=a", "--", "true"], 2, ["NAME[UNIT]=REGEX", "x[ms=a"]),
        (&["--metric=a b=c", "--", "true"], 2, ["letters, digits", "page-time"]),
    ] {
        let (code, told) = failure(Path::new("."), &line(command));
        assert_eq!(code, exit, "{told}");
        assert!(words.iter().all(|word| told.contains(word)), "{command:?}: {told}");
    }
    let limit = "workload={ kind = 'programs', limit = '5s' }";
    let late = ok(Path::new("."), &line(&["--set", limit, "--", "sleep", "9"]));
    assert!(late.contains("still ran after 5 s (workload.limit)"), "{late}");
    let failed = ok(Path::new("."), &line(&["--", "sh", "-c", "echo no such luck >&2; exit 3"]));
    assert!(failed.contains("exit 3\n    stderr | no such luck"), "{failed}");
}

/// An ns script with Emulab's start commands and program agents: a client requests a page, which an archive contains,
/// at a given time.
fn emulab_script_starts_its_programs(world: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("page"), "hello from the archive").unwrap();
    let packed = Command::new("tar").args(["-czf", "page.tar.gz", "page"]).current_dir(&directory).status();
    assert!(packed.unwrap().success());
    std::fs::write(path("x.ns"), include_str!("emulab.ns")).unwrap();
    ok(directory.path(), &["run", "x.ns", world, "--out", "out", "--json"]);
    let journal = std::fs::read_to_string(path("out/runs.jsonl")).unwrap();
    let run: Value = serde_json::from_str(journal.lines().next_back().unwrap()).unwrap();
    let client = &run["facts"]["programs"][1];
    assert_eq!((&client["node"], &client["stdout"]), (&"client".into(), &"hello from the archive".into()));
    let started: hol_base::Duration = client["started"].as_str().unwrap().parse().unwrap();
    assert!((1.5..1.51).contains(&started.as_secs_f64()), "{client}");
    std::fs::remove_dir_all(path("out")).unwrap();
}

/// Go's programs are static, and their listeners request Multipath TCP by default.
fn static_programs_of_go_run_over_all_transports(world: &str) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("echo.go"), include_str!("echo.go")).unwrap();
    let mut go = Command::new("go");
    let built = go.args(["build", "-o", "echo", "echo.go"]).env("CGO_ENABLED", "0").current_dir(&directory);
    assert!(built.status().unwrap().success());
    let all = ["tcp", "mptcp", "sctp", "--repetitions=1", world, "--server=./echo serve", "--listens=7000"];
    let rows = exec(
        directory.path(),
        &[&all[..], &["--metric=heard=hello ([0-9]+)", "--", "./echo", "ask"]].concat(),
    );
    let heard: Vec<_> = rows.iter().map(|row| row["metrics"]["heard"]["mean"].as_f64()).collect();
    assert_eq!(heard, [Some(16.0); 3], "{rows:?}");
}

/// A program injects and reads packets through a TUN interface of its node. It may also poll times(2), which no tick would end where
/// computing takes no time.
fn program_creates_a_tun_interface(world: &str) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("tun.py"), include_str!("tun.py")).unwrap();
    let text =
        ok(directory.path(), &["exec", "tcp", "--repetitions=1", world, "--", "/usr/bin/python3", "tun.py"]);
    assert!(text.contains("| reply\n") && text.contains("| tick\n"), "{world}: {text}");
}

/// An unmodified client and server in Python's asyncio, iperf3, and Samba; each over three transports.
fn programs_of_all_kinds_run_over_all_transports(world: &str) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("echo.py", include_str!("echo.py"));
    write("smb.conf", include_str!("smb.conf"));
    let all = ["tcp", "mptcp", "sctp", "--repetitions=1", world];
    let runs: [&[&str]; 3] = [
        &[
            "--server=/usr/bin/python3 echo.py serve",
            "--listens=7000",
            "--",
            "/usr/bin/python3",
            "echo.py",
            "ask",
        ],
        &[
            "--server=iperf3 -s",
            "--listens=5201",
            "--bandwidth=10Mbit",
            "--",
            "iperf3",
            "-c",
            "server",
            "-t",
            "3",
        ],
        &[
            "--server=mkdir -p /run/samba; smbd -F --no-process-group",
            "--listens=445",
            "--file=/etc/samba/smb.conf=smb.conf",
            "--file=/srv/f=50kB",
            "--",
            "smbclient",
            "-N",
            "//server/share",
            "-c",
            "get f /dev/null",
        ],
    ];
    for run in runs {
        let rows = exec(directory.path(), &[&all, run].concat());
        assert_eq!(rows.len(), 3);
        for row in rows {
            assert_eq!(
                (row["completed"].as_u64(), row["failed"].as_u64()),
                (Some(1), Some(0)),
                "{run:?}: {row}"
            );
        }
    }
}

tests_in! { user_mode = "--world=kernel:uml",
    page_loads_repeatably_over_each_transport: "needs User-Mode Linux (hol kernel build), nginx, curl and mkfs.erofs (erofs-utils)",
    programs_cannot_reach_this_machine: "needs User-Mode Linux (hol kernel build), mount, mknod and mkfs.erofs (erofs-utils)",
    service_lasts_as_long_as_its_workload: "needs User-Mode Linux (hol kernel build) and mkfs.erofs (erofs-utils)",
    printed_numbers_are_metrics_and_written_files_are_kept: "needs User-Mode Linux (hol kernel build), nginx, curl and mkfs.erofs (erofs-utils)",
    emulab_script_starts_its_programs: "needs User-Mode Linux (hol kernel build), nginx, curl, tar and mkfs.erofs (erofs-utils)",
    static_programs_of_go_run_over_all_transports: "needs User-Mode Linux (hol kernel build), Go (golang-go) and mkfs.erofs (erofs-utils)",
    program_creates_a_tun_interface: "needs User-Mode Linux (hol kernel build), /usr/bin/python3 and mkfs.erofs (erofs-utils)",
}

tests_in! { nightly = "--world=kernel",
    page_loads_repeatably_over_each_transport: "slow: .ci/nightly runs it",
    programs_cannot_reach_this_machine: "slow: .ci/nightly runs it",
    service_lasts_as_long_as_its_workload: "slow: .ci/nightly runs it",
    printed_numbers_are_metrics_and_written_files_are_kept: "slow: .ci/nightly runs it",
    emulab_script_starts_its_programs: "slow: .ci/nightly runs it",
    static_programs_of_go_run_over_all_transports: "slow: .ci/nightly runs it",
    program_creates_a_tun_interface: "slow: .ci/nightly runs it",
    programs_of_all_kinds_run_over_all_transports: "slow: .ci/nightly runs it",
}

/// tc(8) executes the commands of `hol topology --tc`; a ping takes 40 ms there, and 1 ms each way on the client's own link.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), tc (iproute2), ping and mkfs.erofs (erofs-utils)"]
fn generated_tc_script_creates_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [
        "rate = '10Mbit'\ndelay = '40ms'\nqueue = '50p'\nloss = '0.01%'\n",
        "discipline = 'fq_codel'\noverhead = '14B'\nloss = '1%'\n",
        "discipline = { codel = { ecn = true, ce_threshold = '1ms' } }\noverhead = '14B'\n",
        "discipline = 'pie'\noverhead = '14B'\n",
        "queue = '50kB'\noverhead = '14B'\ncorrupt = '0.1%'\n",
        "jitter = '2ms'\njitter_distribution = 'pareto'\nreorder = '1%'\nreorder_by = '5ms'\n",
        "loss = { good_to_bad = '1%', bad_to_good = '30%', loss_bad = '50%' }\noverhead = '38B'\n",
    ];
    // A node contains only the programs that its command names.
    let (mut files, mut script) = (Vec::new(), "set -e\ntc -V\n".to_owned());
    // The last path stays on the client's link.
    for (number, path) in paths.iter().enumerate().rev() {
        let [toml, sh] = ["toml", "sh"].map(|ending| format!("{number}.{ending}"));
        let text = format!("transports = ['tcp']\n[network]\n{path}");
        std::fs::write(directory.path().join(&toml), text).unwrap();
        ok(directory.path(), &["topology", &toml, "--tc", &sh]);
        files.push(format!("--file=/{sh}={sh}"));
        script += &format!("UP=link1 DOWN=lo sh /{sh}\n");
    }
    script += "ping -c 1 server";
    let mut line = vec!["tcp", "--repetitions=1", "--world=kernel:uml", "--delay=1ms"];
    line.extend(files.iter().map(String::as_str));
    line.extend(["--metric=round[ms]=time=([0-9.]+)", "--", "sh", "-c", &script]);
    let rows = exec(directory.path(), &line);
    let round = rows[0]["metrics"]["round"]["mean"].as_f64().unwrap_or_else(|| panic!("{}", rows[0]));
    assert!((42.0..43.0).contains(&round), "{round}");
}
