//! Sweeps with the real program: interrupted, killed, continued, repeated.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::program::{BIN, code, failure, hol, ok};

/// 3 × 2 × 10 runs, which take a while together even on a fast machine.
const LONG: &str = "
    transports = ['tcp', 'sctp:streams=1', 'sctp:streams=8']
    messages = 40000
    repetitions = 10
    [sweep]
    'network.loss' = ['0%', '1%']
";
const SHORT: &str = "
    transports = ['tcp', 'sctp:streams=8']
    messages = 500
    repetitions = 5
    [sweep]
    'network.loss' = ['0%', '2%']
";

fn journal(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("out/runs.jsonl")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns point and repetition of every run in the journal.
fn runs(dir: &Path) -> Vec<(String, u64)> {
    let run = |line: String| {
        let run: serde_json::Value = serde_json::from_str(&line).expect(&line);
        (run["point"].as_str().unwrap().to_owned(), run["repetition"].as_u64().unwrap())
    };
    let mut runs: Vec<_> = journal(dir).into_iter().map(run).collect();
    runs.sort();
    runs
}

fn points(dir: &Path) -> String {
    fs::read_to_string(dir.join("out/points.csv")).unwrap()
}

/// Starts the long sweep and waits until it has finished some runs.
fn begin(dir: &Path) -> Child {
    fs::write(dir.join("long.toml"), LONG).unwrap();
    let child = Command::new(BIN)
        .current_dir(dir)
        .args(["run", "long.toml", "--out", "out", "--jobs", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut patience = 0;
    while journal(dir).len() < 2 {
        patience += 1;
        assert!(patience < 3000, "no run finished");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    child
}

/// Continues the sweep, and checks that no run is lost and none is performed twice.
fn continue_sweep(dir: &Path, before: &[(String, u64)]) {
    assert!((2..60).contains(&before.len()), "{} runs before", before.len());
    ok(dir, &["run", "long.toml", "--out", "out"]);
    let mut after = runs(dir);
    assert_eq!(after.len(), 60);
    after.dedup();
    assert_eq!(after.len(), 60, "a run was done twice");
    assert!(before.iter().all(|run| after.contains(run)), "a run was lost");
}

#[test]
fn ctrl_c_ends_a_sweep_and_the_same_command_continues() {
    let dir = tempfile::tempdir().unwrap();
    let child = begin(dir.path());
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{message}");
    assert!(message.contains("run the same command again"), "{message}");
    assert!(message.contains("`hol report out` for a report of the finished runs"), "{message}");
    assert!(points(dir.path()).lines().count() > 1, "the table of what is there is written");
    let before = runs(dir.path());
    continue_sweep(dir.path(), &before);
}

#[test]
fn killed_sweep_loses_at_most_its_unfinished_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = begin(dir.path());
    child.kill().unwrap();
    child.wait().unwrap();
    // The kill may occur in the middle of a line; here it certainly does.
    let path = dir.path().join("out/runs.jsonl");
    let mut text = fs::read_to_string(&path).unwrap();
    text.truncate(text.trim_end().len() - 40);
    fs::write(&path, &text).unwrap();
    let whole = text.lines().count() - 1;
    assert!(whole >= 1);
    ok(dir.path(), &["run", "long.toml", "--out", "out"]);
    let mut after = runs(dir.path());
    after.dedup();
    assert_eq!((after.len(), journal(dir.path()).len()), (60, 60));
}

#[test]
fn results_do_not_depend_on_the_number_of_jobs_or_on_time() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (dir, jobs) in [(&one, "1"), (&two, "2")] {
        fs::write(dir.path().join("short.toml"), SHORT).unwrap();
        ok(dir.path(), &["run", "short.toml", "--out", "out", "--jobs", jobs]);
    }
    assert_eq!(points(one.path()), points(two.path()));
    // All runs exist already: nothing is run, nothing changes.
    let before = journal(one.path());
    ok(one.path(), &["run", "short.toml", "--out", "out"]);
    assert_eq!(journal(one.path()), before);
}

#[test]
fn precision_needs_the_same_repetitions_for_any_number_of_jobs() {
    let text = "transports = ['tcp']\nmessages = 1000\nrepetitions = '3..40'\nprecision = '3%'\n\
                [network]\nloss = '2%'\n";
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (dir, jobs) in [(&one, "1"), (&two, "3")] {
        fs::write(dir.path().join("precise.toml"), text).unwrap();
        ok(dir.path(), &["run", "precise.toml", "--out", "out", "--jobs", jobs]);
    }
    assert_eq!(points(one.path()), points(two.path()));
}

#[test]
fn verify_repeats_runs_and_names_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out"]);
    assert!(ok(dir.path(), &["verify", "out"]).contains("20 runs repeated, all digests are equal"));
    assert!(ok(dir.path(), &["verify", "out", "--sample", "3"]).contains("3 runs repeated"));

    let path = dir.path().join("out/runs.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let at = text.find("\"digest\":\"").unwrap() + 10;
    let other = if &text[at..=at] == "0" { "1" } else { "0" };
    fs::write(&path, format!("{}{other}{}", &text[..at], &text[at + 1..])).unwrap();
    let output = hol(dir.path(), &["verify", "out"]);
    assert_eq!(code(&output), 1);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("network.loss=") && said.contains("repetition"), "{said}");
}

#[test]
fn verify_detects_changed_totals() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out"]);
    let path = dir.path().join("out/runs.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"completed\":100", "\"completed\":99", 1)).unwrap();
    let output = hol(dir.path(), &["verify", "out"]);
    assert_eq!(code(&output), 1);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("repetition") && said.contains("summary.completed was 99 and is now 100"),
        "{said}"
    );
}

#[test]
fn verify_reports_missing_runs() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out"]);
    let path = dir.path().join("out/runs.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let first = text.split_inclusive('\n').next().unwrap();
    fs::write(&path, &text[first.len()..]).unwrap();
    assert!(ok(dir.path(), &["verify", "out"]).contains("1 of 20 runs are missing"));
    fs::write(&path, "").unwrap();
    assert!(failure(dir.path(), &["verify", "out"]).1.contains("no runs to verify"));
    fs::remove_file(&path).unwrap();
    let (exit, message) = failure(dir.path(), &["verify", "out"]);
    assert!(exit == 1 && message.contains("no runs to verify"), "{message}");
}

#[test]
fn report_needs_only_the_result_directory() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out"]);
    fs::remove_file(dir.path().join("short.toml")).unwrap();
    let page = dir.path().join("out/report.html");
    let first = fs::read(&page).unwrap();
    fs::remove_file(&page).unwrap();
    ok(dir.path(), &["report", "out"]);
    assert_eq!(fs::read(&page).unwrap(), first);

    let (exit, message) = failure(dir.path(), &["report", "out", "out"]);
    assert_eq!(exit, 2);
    assert!(message.contains("out and out: both directories have results of the model world"), "{message}");
}

/// RO-Crate 1.1: section "Root Data Entity" has the fields, section "RO-Crate JSON-LD" says that every entity is in one flat list.
#[test]
fn crate_describes_every_file_and_its_origin() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out"]);
    fs::write(dir.path().join("out/a note.txt"), "mine").unwrap();
    let license = "https://creativecommons.org/licenses/by/4.0/";
    ok(dir.path(), &["report", "out", "--crate", "--license", license]);
    // When it is written again, it does not describe itself.
    ok(dir.path(), &["report", "out", "--crate", "--license", license]);
    let text = fs::read_to_string(dir.path().join("out/ro-crate-metadata.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let graph = document["@graph"].as_array().unwrap();
    let entity = |id: &str| graph.iter().find(|entity| entity["@id"] == id).unwrap_or_else(|| panic!("{id}"));

    let root = entity("./");
    assert_eq!(root["license"]["@id"], license);
    for field in ["name", "description", "datePublished"] {
        assert!(root[field].is_string(), "{field}");
    }
    let parts = root["hasPart"].as_array().unwrap();
    assert!(parts.len() > 5);
    for part in parts {
        let file = entity(part["@id"].as_str().unwrap());
        let name = file["name"].as_str().unwrap();
        assert_eq!(part["@id"], name.replace(' ', "%20"));
        let sum = Command::new("sha256sum").arg(dir.path().join("out").join(name)).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert!(sum.starts_with(file["sha256"].as_str().unwrap()), "{name}: {sum}");
    }
    let described = |name: &str| parts.iter().any(|part| part["@id"] == name);
    assert!(described("runs.jsonl") && described("a%20note.txt") && !described("ro-crate-metadata.json"));

    let sum = |path: &Path| {
        let output = Command::new("sha256sum").arg(path).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
    };
    let run = entity("#run");
    assert_eq!(entity(run["instrument"]["@id"].as_str().unwrap())["sha256"], sum(Path::new(BIN)));
    let input = entity(run["object"]["@id"].as_str().unwrap());
    assert_eq!(
        (&input["name"], &input["sha256"]),
        (&"short.toml".into(), &sum(&dir.path().join("short.toml")).into())
    );
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains(&sum(Path::new(BIN))) && page.contains(&sum(&dir.path().join("short.toml"))));

    let (exit, message) = failure(dir.path(), &["report", "out", "--license", license]);
    assert!(exit == 2 && message.contains("--crate"), "{message}");
}

#[test]
fn directory_of_another_experiment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out"]);
    let (exit, message) = failure(dir.path(), &["run", "short.toml", "--out", "out", "--set", "seed=2"]);
    assert_eq!(exit, 1);
    assert!(message.contains("another experiment") && message.contains("--out"), "{message}");
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/thesis.tex"), "").unwrap();
    let (_, message) = failure(dir.path(), &["run", "short.toml", "--out", "mine"]);
    assert!(message.contains("contains other files"), "{message}");
}

#[test]
fn records_of_all_messages_are_kept_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out", "--records"]);
    let files: Vec<_> =
        fs::read_dir(dir.path().join("out/records")).unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(files.len(), 20);
    let content = fs::read(&files[0]).unwrap();
    assert!(content.starts_with(b"PAR1") && content.ends_with(b"PAR1"));
}

#[test]
fn unwritable_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let (exit, message) = failure(dir.path(), &["run", "short.toml", "--out", "file/below"]);
    assert_eq!(exit, 1);
    assert!(message.contains("file/below") && message.contains("--out"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_is_reported_with_the_file_and_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    ok(dir.path(), &["run", "short.toml", "--out", "out"]);
    // Every write to this device fails as on a full disk.
    std::os::unix::fs::symlink("/dev/full", dir.path().join("out/points.csv.part")).unwrap();
    let (exit, message) = failure(dir.path(), &["run", "short.toml", "--out", "out"]);
    assert_eq!(exit, 1);
    assert!(message.contains("out/points.csv") && message.contains("same command again"), "{message}");
}

#[test]
fn figures_of_an_experiment_can_change_after_its_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = |figures: &str| {
        let sweep = "[sweep]\n'network.loss' = ['0%', '1%']\n'network.delay' = ['5ms', '9ms']\n";
        let text = format!("transports = ['tcp', 'udp']\nmessages = 100\n{figures}\n{sweep}");
        fs::write(dir.path().join("mine.toml"), text).unwrap();
    };
    let page = || fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    file("");
    ok(dir.path(), &["run", "mine.toml", "--out", "out"]);
    assert!(page().contains("Mean response time over loss, a panel for each delay"));
    file("[[figure]]\nover = 'network.delay'\nmetric = 'delivered'");
    ok(dir.path(), &["run", "mine.toml", "--out", "out"]);
    let page = page();
    assert!(page.contains("Messages delivered over delay, a panel for each loss"), "{page}");
    assert!(!page.contains("Mean response time over loss"), "only what is wished for");
    for (figure, problem) in [
        (
            "over = 'network.dely'",
            "mine.toml:4:8: \"network.dely\" is not swept; did you mean \"network.delay\"?",
        ),
        (
            "over = 'network.loss'\nmetric = 'speed'",
            "mine.toml:5:10: unknown metric \"speed\"; use one of response-time",
        ),
        ("over = 'network.loss'\npanels = 'network.loss'", "names the key of the horizontal axis"),
        (
            "over = 'network.loss'\nmetric = 'throughput'",
            "mine.toml:5:10: no point has the metric throughput: use a workload without replies (oneway, bulk)",
        ),
        (
            "over = 'network.loss'\nmetric = 'fairness'\n[[background]]\ntransport = 'tcp'\nmessages = 5",
            "mine.toml:5:10: no point has the metric fairness: add a [[background]] that competes",
        ),
        (
            "over = 'network.jitter'\npanels = 'network.rate'\n[[zip]]\n'network.jitter' = ['1ms', '2ms']\n\
             'network.rate' = ['1Mbit', '2Mbit']",
            "\"network.rate\" is swept together with \"network.jitter\"",
        ),
    ] {
        file(&format!("[[figure]]\n{figure}"));
        let (exit, message) = failure(dir.path(), &["run", "mine.toml", "--out", "out"]);
        assert!(exit == 2 && message.contains(problem), "{message}");
    }
}

/// The queue before the link grows during the whole run, and the rate of a ping-pong depends on its response times.
#[test]
fn without_a_steady_state_no_transport_is_called_faster() {
    let dir = tempfile::tempdir().unwrap();
    let text = "transports = ['tcp', 'sctp']\nmessages = 600\nrepetitions = 6\n[[background]]\n[workload]\n\
                kind = 'pingpong'\nsize = '400B'\n[network]\nrate = '4Mbit'\n\
                [sweep]\n'network.queue' = ['80p']\n";
    fs::write(dir.path().join("mine.toml"), text).unwrap();
    let said = ok(dir.path(), &["run", "mine.toml", "--out", "out"]);
    assert!(said.contains("no steady state") && !said.contains("faster"), "{said}");
}

/// Messages of a greedy workload have no meaningful response time, so the throughput is the main metric.
#[test]
fn bulk_sweep_reports_throughput() {
    let dir = tempfile::tempdir().unwrap();
    let text = "transports = ['tcp', 'sctp']\nmessages = 200\nrepetitions = 5\n[workload]\nkind = 'bulk'\n\
                [network]\nrate = '2Mbit'\n[sweep]\n'workload.size' = ['8kB', '64kB']\n";
    fs::write(dir.path().join("mine.toml"), text).unwrap();
    let said = ok(dir.path(), &["run", "mine.toml", "--out", "out"]);
    assert!(said.contains("kbit/s") && !said.contains("in the first half of the runs"), "{said}");
    let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    let column = |head: &str| page.find(&format!("<th scope=\"col\">{head}")).expect(head);
    assert!(column("kbit/s") < column("mean"));
}
