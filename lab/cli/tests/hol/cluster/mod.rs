//! `hol submit` with real clusters: SLURM with several nodes on this machine, and HyperQueue's server and workers.

mod slurm;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::{BIN, failure, ok};
use slurm::{Slurm, jobs_on, kill, until};

/// Six parts that take seconds each, so that the test can observe one while it runs.
const LONG: &str = "
    transports = ['tcp', 'sctp:streams=8']
    messages = 400000
    repetitions = 9
    [network]
    loss = '1%'
";
const SHORT: &str = "
    transports = ['tcp', 'sctp:streams=8']
    messages = 900
    repetitions = 6
    records = 'all'
    [sweep]
    'network.loss' = ['0%', '1%', '5%']
";

/// Returns a Python that has `hyperqueue` and `kubernetes-validate`.
fn python() -> String {
    std::env::var("HOL_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Creates a directory with an experiment; its name contains a space.
fn directory(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("my one.toml"), text).unwrap();
    dir
}

/// Returns the table of results, in which each point has its digest.
fn table(dir: &Path, results: &str) -> String {
    let table = fs::read_to_string(dir.join(results).join("points.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains("digest") && table.lines().count() > 2, "{table}");
    table
}

/// Creates a directory with `hq`, a script that passes job definitions to HyperQueue's own library, and starts a server
/// with two workers.
fn hyperqueue(dir: &Path) -> Child {
    let has = Command::new(python()).args(["-c", "import hyperqueue"]).output().unwrap();
    assert!(has.status.success(), "{} (pip install hyperqueue)", String::from_utf8_lossy(&has.stderr));
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hol/cluster");
    fs::create_dir(dir.join("bin")).unwrap();
    let hq = format!("#!/bin/sh\nexec {} {} \"$@\"\n", python(), here.join("hq.py").display());
    fs::write(dir.join("bin/hq"), hq).unwrap();
    fs::set_permissions(dir.join("bin/hq"), fs::Permissions::from_mode(0o755)).unwrap();
    let server =
        Command::new(dir.join("bin/hq")).arg("serve").current_dir(dir).stdin(Stdio::piped()).spawn().unwrap();
    until("HyperQueue serves", || dir.join("serving").exists());
    server
}

#[test]
#[ignore = "needs HyperQueue (pip install hyperqueue, HOL_PYTHON names the Python)"]
fn hyperqueue_gives_the_results_of_one_machine() {
    let dir = directory(SHORT);
    let dir = dir.path();
    let mut server = hyperqueue(dir);
    let path = format!("{}:{}", dir.join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new(BIN)
        .args(["submit", "my one.toml", "--to", "hyperqueue", "--shards", "5", "--wait", "--out", "there"])
        .current_dir(dir)
        .env("PATH", path)
        .output()
        .unwrap();
    drop(server.stdin.take());
    server.wait().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("5 of 5 parts have no results yet"), "{said}");
    ok(dir, &["run", "my one.toml", "--out", "here"]);
    assert_eq!(table(dir, "there"), table(dir, "here"));
}

#[test]
#[ignore = "needs Python with kubernetes-validate (pip install kubernetes-validate, HOL_PYTHON names the Python)"]
fn kubernetes_manifests_fit_the_published_schema() {
    let dir = directory(SHORT);
    let dir = dir.path();
    let arguments = ["submit", "my one.toml", "--to", "kubernetes", "--shards", "5", "--dry-run"];
    let (code, said) = failure(dir, &arguments);
    assert!(code == 2 && said.contains("--image IMAGE") && said.contains("--volume CLAIM"), "{said}");
    let pods = ["--image", "lab/hol", "--volume", "results"];
    let said = ok(dir, &[&arguments[..], &pods].concat());
    let scripts = dir.join("results/my one-parts/submit");
    assert!(said.contains("submit.sh'` submits 5 parts"), "{said}");
    let check = "import json, sys, kubernetes_validate as k\n\
                 for path in sys.argv[1:]: print('valid for', k.validate(json.load(open(path)), '1.29', strict=True))";
    let checked = Command::new(python())
        .args(["-c", check])
        .args(["experiment.json", "parts.json", "merge.json"].map(|name| scripts.join(name)))
        .output()
        .unwrap();
    let said = [checked.stdout, checked.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(checked.status.success() && said.matches("valid for").count() == 3, "{said}");
}

#[test]
fn invalid_submissions_are_refused_with_a_remedy() {
    let dir = directory(SHORT);
    let dir = dir.path();
    let refused = |more: &[&str]| failure(dir, &[&["submit", "my one.toml"][..], more].concat());
    for (more, cure) in [
        (&["--to", "condor"][..], "use slurm, hyperqueue, kubernetes, or an address"),
        (&["--to", "slurm", "--priority", "3"], "only to a server"),
        (&["--to", "http://127.0.0.1:1", "--shards", "3"], "only to a cluster"),
        (&["--to", "http://127.0.0.1:1", "--set", "seed=3"], "write the settings into the file"),
        (&["--to", "slurm", "--image", "x"], "omit them"),
    ] {
        let (code, said) = refused(more);
        assert!(code == 2 && said.contains(cure), "{more:?}: {said}");
    }
    let (code, said) = failure(dir, &["submit", "-", "--to", "slurm"]);
    assert!(code == 2 && said.contains("give the path of a file"), "{said}");

    let nothing = Command::new(BIN)
        .args(["submit", "my one.toml", "--to", "slurm", "--shards", "2"])
        .current_dir(dir)
        .env("PATH", dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&nothing.stderr);
    assert!(
        !nothing.status.success() && said.contains("`sbatch` is not installed on this machine"),
        "{said}"
    );

    ok(dir, &["run", "my one.toml", "--shard", "1/2", "--out", "results/my one-parts/1"]);
    let (code, said) = refused(&["--to", "slurm", "--shards", "3"]);
    assert!(code == 2 && said.contains("already has 2 parts"), "{said}");
    let said = ok(dir, &["submit", "my one.toml", "--to", "slurm", "--dry-run"]);
    assert!(said.contains("submits 1 parts"), "{said}");
}

mod nightly {
    use super::*;

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn slurm_gives_the_results_of_one_machine_despite_failures() {
        let mut slurm = Slurm::start(3);
        let dir = directory(LONG);
        let dir = dir.path();
        let mut submit = Command::new(BIN)
            .args(["submit", "my one.toml", "--to", "slurm", "--shards", "6", "--wait", "--out", "there"])
            .current_dir(dir)
            .env("SLURM_CONF", slurm.configuration())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();

        until("two nodes work", || !jobs_on("n1").is_empty() && !jobs_on("n2").is_empty());
        jobs_on("n1").into_iter().for_each(kill);
        slurm.kill_node(2);

        until("it is over", || submit.try_wait().unwrap().is_some());
        let output = submit.wait_with_output().unwrap();
        let log =
            |name: &str| fs::read_to_string(dir.join("there-parts/submit").join(name)).unwrap_or_default();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{}", log("merge.log"));
        assert!(said.contains("6 of 6 parts have no results yet") && said.contains("SLURM job"), "{said}");
        let logs: Vec<String> = (1..=6).map(|part| log(&format!("part-{part}.log"))).collect();
        let restarted = logs.iter().filter(|log| log.contains("restarted 1 times")).count();
        assert_eq!(restarted, 2, "{logs:?}");

        ok(dir, &["run", "my one.toml", "--out", "here"]);
        assert_eq!(table(dir, "there"), table(dir, "here"));

        // All runs are finished, so the second submission only merges the results.
        let again = Command::new(BIN)
            .args(["submit", "my one.toml", "--to", "slurm", "--wait", "--out", "there"])
            .current_dir(dir)
            .env("SLURM_CONF", slurm.configuration())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && said.contains("0 of 6 parts are to be done"), "{said}");
    }
}
