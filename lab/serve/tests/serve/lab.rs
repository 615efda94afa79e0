//! Tests of the program `hol-serve`: the server and the processes of experiments are stopped and killed, and get requests over the network.

#![expect(clippy::disallowed_methods, reason = "a test polls a server in real time")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::poll_fn;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Request;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::program::{self, hol_serve};

/// Maximum number of polls until a server is in a state: two minutes.
const MAX_POLLS: usize = 1200;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Ten points of five short runs.
pub const SHORT: &str = "title = 'Short'\ntransports = ['tcp', 'sctp']\nmessages = 20000\nrepetitions = 5\n\
    [sweep]\n'network.loss' = ['0%', '1%', '2%', '3%', '4%']\n";
/// An experiment that does not end during a test.
const LONG: &str = "title = 'Long'\ntransports = ['tcp']\nmessages = 500000000\nrepetitions = 1000\n";

/// A server with its own state directory.
pub struct Lab {
    state: PathBuf,
    pub process: Child,
    pub url: String,
    cores: u32,
}

impl Lab {
    pub fn start(state: &Path, cores: u32) -> Self {
        Self::start_with(state, cores, &[])
    }

    pub fn start_with(state: &Path, cores: u32, options: &[&str]) -> Self {
        let mut process = hol_serve()
            .args(["--listen", "127.0.0.1:0", "--cores", &cores.to_string(), "--state"])
            .arg(state)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http") && line.contains("://127.0.0.1:"), "{line:?}");
        Self { state: state.to_owned(), process, url: line.trim().trim_end_matches('/').to_owned(), cores }
    }

    /// Starts a server whose state directory is a disk of this many MiB, in its own mount namespace.
    fn start_on_small_disk(state: &Path, mebi: u32) -> Self {
        fs::create_dir_all(state).unwrap();
        let serve = hol_serve();
        let mut process = Command::new("unshare")
            .args([
                "--mount",
                "sh",
                "-c",
                "mount -t tmpfs -o size=$1m none \"$2\" && shift 2 && exec \"$@\"",
                "sh",
            ])
            .args([mebi.to_string().as_ref(), state.as_os_str(), serve.get_program()])
            .args(serve.get_args())
            .args(["--listen", "127.0.0.1:0", "--cores", "1", "--state"])
            .arg(state)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http://127.0.0.1:"), "{line:?}: mount --type tmpfs needs root");
        // The disk is visible only in this namespace.
        let state =
            PathBuf::from(format!("/proc/{}/root", process.id())).join(state.strip_prefix("/").unwrap());
        Self { state, process, url: line.trim().trim_end_matches('/').to_owned(), cores: 1 }
    }

    /// Kills the server and starts it again.
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let next = Self::start(&self.state.clone(), self.cores);
        drop(std::mem::replace(self, next));
    }

    /// Sends a request, and returns the status code and the body of the response.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("{}{path}", self.url);
        let answer = match (method, body) {
            ("GET", _) => agent.get(url).call(),
            ("DELETE", _) => agent.delete(url).call(),
            ("PATCH", Some(body)) => agent.patch(url).send_json(body),
            (_, Some(body)) => agent.post(url).send_json(body),
            (_, None) => agent.post(url).send_empty(),
        };
        let mut answer = answer.unwrap();
        let text = answer.body_mut().with_config().limit(1 << 28).read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub fn submit(&self, text: &str, more: &Value) -> i64 {
        let mut body = json!({ "text": text });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, experiment) = self.ask("POST", "/api/experiments", Some(&body));
        assert_eq!(status, 201, "{experiment}");
        experiment["id"].as_i64().unwrap()
    }

    fn act(&self, id: i64, action: &str) -> u16 {
        self.ask("POST", &format!("/api/experiments/{id}/{action}"), None).0
    }

    fn experiment(&self, id: i64) -> Value {
        self.ask("GET", &format!("/api/experiments/{id}"), None).1
    }

    /// Waits until an experiment is in the wanted state.
    fn until(&self, id: i64, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..MAX_POLLS {
            let experiment = self.experiment(id);
            if is_so(&experiment) {
                return experiment;
            }
            sleep(POLL_INTERVAL);
        }
        panic!("it is still {}", self.experiment(id));
    }

    pub fn until_state(&self, id: i64, state: &str) -> Value {
        self.until(id, |experiment| experiment["state"] == state)
    }

    /// Returns the running processes of experiments.
    pub fn jobs(&self) -> Vec<Pid> {
        let parent = self.process.id().to_string();
        let processes =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_ours = |pid: &String| {
            // The name of a process may have spaces and brackets, so the fields begin after the last bracket.
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
            let (state, ppid) = (fields.next(), fields.next());
            ppid == Some(&parent) && state != Some("Z")
        };
        processes.filter(is_ours).filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    pub fn results(&self, id: i64) -> PathBuf {
        let mut directories =
            fs::read_dir(self.state.join("experiments")).unwrap().map(|entry| entry.unwrap());
        let is_its = |entry: &fs::DirEntry| {
            entry.file_name().to_str().unwrap().split('-').next() == Some(&id.to_string())
        };
        directories.find(is_its).unwrap().path().join("results")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the digest of each run by point and repetition; panics if a run occurs twice.
fn digests(results: &Path) -> BTreeMap<String, String> {
    let journal = fs::read_to_string(results.join("runs.jsonl")).unwrap();
    let mut found = BTreeMap::new();
    for line in journal.lines() {
        let run: Value = serde_json::from_str(line).unwrap();
        let key = format!("{} {}", run["point"], run["repetition"]);
        let digest = run["summary"]["digest"].to_string();
        assert!(digest.len() > 10, "{run}");
        assert!(found.insert(key.clone(), digest).is_none(), "{key} is there twice");
    }
    found
}

fn hol(arguments: &[&str], directory: &Path) -> Output {
    Command::new(program::hol()).args(arguments).current_dir(directory).output().unwrap()
}

/// Returns the digests of an experiment that nothing interrupts.
fn undisturbed(text: &str, directory: &Path) -> BTreeMap<String, String> {
    fs::write(directory.join("plain.toml"), text).unwrap();
    let run = hol(&["run", "plain.toml", "--out", "plain"], directory);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    digests(&directory.join("plain"))
}

#[test]
fn submitted_experiment_has_the_results_of_hol_run() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 2);
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    let submitted = hol(&["submit", "short.toml", "--to", &lab.url, "--wait"], dir.path());
    let said = String::from_utf8_lossy(&submitted.stdout);
    assert!(submitted.status.success(), "{said}{}", String::from_utf8_lossy(&submitted.stderr));
    assert!(said.contains("experiment 1, short: queued") && said.contains("short: done"), "{said}");
    let fetched = hol(&["get", "1", "--from", &lab.url, "--out", "fetched"], dir.path());
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    assert_eq!(digests(&dir.path().join("fetched")), undisturbed(SHORT, dir.path()));
    assert!(hol(&["report", "fetched"], dir.path()).status.success());
    let experiment = lab.experiment(1);
    assert_eq!(
        (&experiment["progress"]["runs"], &experiment["progress"]["runs_wanted"]),
        (&json!(50), &json!(50))
    );
    assert_eq!(lab.ask("GET", "/api/experiments/1/points", None).1.as_array().unwrap().len(), 10);
    assert!(!hol(&["get", "1", "--from", &lab.url, "--out", "fetched"], dir.path()).status.success());
    let wrong = hol(&["submit", "short.toml", "--to", &lab.url, "--project", "other"], dir.path());
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn swapped_out_experiment_keeps_its_results_and_continues() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 1);
    let id = lab.submit(SHORT, &json!({}));
    lab.until(id, |experiment| experiment["progress"]["runs"].as_u64() > Some(2));
    // The server rejects the request if the experiment has already ended.
    if lab.act(id, "swap-out") == 200 {
        let before = lab.experiment(id)["state"].clone();
        assert_eq!(before, "swapped_out");
        assert_eq!(lab.act(id, "swap-in"), 200);
    }
    let progress = lab.until_state(id, "done")["progress"].clone();
    assert_eq!(
        (&progress["runs"], &progress["runs_wanted"]),
        (&json!(50), &json!(50)),
        "both processes count"
    );
    assert_eq!(digests(&lab.results(id)), undisturbed(SHORT, dir.path()));
}

#[test]
fn cores_go_by_priority_and_without_batch_mode_nothing_waits() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 2);
    let first = lab.submit(LONG, &json!({ "cores": 2 }));
    lab.until_state(first, "active");
    let low = lab.submit(SHORT, &json!({ "cores": 1 }));
    let high = lab.submit(LONG, &json!({ "cores": 2, "priority": 5 }));
    let why = lab.until(low, |experiment| experiment["why"] == "1 experiment is ahead in the queue");
    assert_eq!(why["state"], "queued");
    let now = lab.submit(SHORT, &json!({ "cores": 1, "batch": false }));
    assert!(lab.until_state(now, "swapped_out")["why"].as_str().unwrap().contains("batch mode is off"));
    let large = lab.submit(SHORT, &json!({ "cores": 3 }));
    assert!(lab.until_state(large, "swapped_out")["why"].as_str().unwrap().contains("this machine has 2"));
    assert_eq!(lab.act(first, "terminate"), 200);
    lab.until_state(high, "active");
    assert_eq!(lab.jobs().len(), 1);
    assert_eq!(lab.act(high, "terminate"), 200);
    lab.until_state(low, "done");
    assert_eq!(lab.experiment(first)["state"], "terminated");
}

#[test]
fn auto_swap_swaps_out_after_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 1);
    let id = lab.submit(LONG, &json!({ "auto_swap": 1 }));
    assert_eq!(lab.until_state(id, "swapped_out")["why"], "auto swap after 1 s");
}

/// A stopped process, like one that waits for a missing disk, makes no progress.
#[test]
fn idle_swap_swaps_out_without_progress() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 1);
    let id = lab.submit(LONG, &json!({}));
    lab.until_state(id, "active");
    kill_process(lab.jobs()[0], Signal::STOP).unwrap();
    // Sets the limit only now, because on a busy machine a starting process may be silent for as long.
    assert_eq!(lab.ask("PATCH", &format!("/api/experiments/{id}"), Some(&json!({ "idle_swap": 2 }))).0, 200);
    assert_eq!(lab.until_state(id, "swapped_out")["why"], "idle swap: no progress for 2 s");
}

#[test]
fn stopping_server_lets_experiments_save_their_results() {
    let dir = tempfile::tempdir().unwrap();
    let mut lab = Lab::start(&dir.path().join("state"), 1);
    let id = lab.submit(SHORT, &json!({}));
    lab.until(id, |experiment| experiment["state"] != "queued");
    kill_process(Pid::from_child(&lab.process), Signal::TERM).unwrap();
    assert!(lab.process.wait().unwrap().success());
    let next = Lab::start(&lab.state.clone(), 1);
    next.until_state(id, "done");
    assert_eq!(digests(&next.results(id)), undisturbed(SHORT, dir.path()));
}

/// After `kill -9` of the server or of an experiment's process at any time, no run is lost or repeated, no process
/// remains, and the results are the same. `HOL_KILLS=200` kills 200 times.
#[test]
fn killed_processes_lose_no_run_and_repeat_none() {
    let kills: u64 = std::env::var("HOL_KILLS").map_or(4, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let wanted = undisturbed(SHORT, dir.path());
    let mut lab = Lab::start(&dir.path().join("state"), 2);
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut ids = BTreeSet::new();
    let (mut servers, mut jobs) = (0, 0);
    while servers + jobs < kills {
        // There is always an experiment to run.
        let (_, queued) = lab.ask("GET", "/api/experiments?state=queued", None);
        if queued.as_array().unwrap().len() < 3 {
            ids.insert(lab.submit(SHORT, &json!({ "cores": 1 })));
        }
        sleep(Duration::from_millis(draw(400)));
        let running = lab.jobs();
        if draw(2) == 0 {
            lab.kill();
            servers += 1;
            for pid in running {
                assert!(!is_hol_run(pid), "{pid:?} outlived its server");
            }
        } else if !running.is_empty() {
            // The process may already have ended.
            let _ = kill_process(running[draw(running.len() as u64) as usize], Signal::KILL);
            jobs += 1;
        }
    }
    for id in &ids {
        lab.until_state(*id, "done");
        assert_eq!(digests(&lab.results(*id)), wanted, "experiment {id}");
    }
    eprintln!("{servers} servers and {jobs} processes were killed over {} experiments", ids.len());
    let (_, all) = lab.ask("GET", "/api/experiments?limit=1000", None);
    assert_eq!(all.as_array().unwrap().len(), ids.len());
}

/// Creates the administrator `root` with the password `correct horse` in a state directory that no server uses.
pub fn add_administrator(state: &Path) {
    let mut adding = hol_serve()
        .arg("--state")
        .arg(state)
        .args(["--administrator", "root"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut adding.stdin.take().unwrap(), b"correct horse\n").unwrap();
    assert!(adding.wait().unwrap().success());
}

/// Creates an administrator on the machine of the server, a project and a token, and submits an experiment over TLS.
#[test]
fn token_submits_an_experiment_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    // A certificate like those of `openssl req -x509`: of a certificate authority, and for a host name.
    let mut parameters = rcgen::CertificateParams::new(["lab.example.org".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let made = parameters.self_signed(&signing_key).unwrap();
    fs::write(dir.path().join("certificate.pem"), made.pem()).unwrap();
    fs::write(dir.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
    fs::write(dir.path().join("short.toml"), SHORT).unwrap();
    let [state, certificate, key] =
        ["state", "certificate.pem", "key.pem"].map(|name| dir.path().join(name).display().to_string());
    let tls = ["--tls", &certificate, &key];
    let refused =
        |arguments: &[&str]| hol_serve().args(["--state", &state]).args(arguments).output().unwrap();
    let nobody = refused(&[&["--listen", "127.0.0.1:0"][..], &tls].concat());
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("--administrator NAME"), "{nobody:?}");
    let plain = refused(&["--listen", "0.0.0.0:0"]);
    assert!(String::from_utf8_lossy(&plain.stderr).contains("passwords must be encrypted"), "{plain:?}");

    add_administrator(Path::new(&state));

    let lab = Lab::start_with(Path::new(&state), 1, &tls);
    let url = lab.url.clone();
    let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
    let agent: ureq::Agent = ureq::Agent::config_builder().tls_config(tls).build().into();
    let login = json!({ "name": "root", "password": "correct horse" });
    let answer = agent.post(format!("{url}/api/login")).send_json(login).unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(answer.headers().contains_key("strict-transport-security"));
    let post = |path: &str, body: Value| {
        agent.post(format!("{url}{path}")).header("cookie", &cookie).send_json(body).unwrap()
    };
    post("/api/projects", json!({ "name": "lab", "title": "Ours" }));
    let issued: Value =
        post("/api/tokens", json!({ "name": "ci", "days": 1 })).body_mut().read_json().unwrap();
    fs::write(dir.path().join("token"), issued["token"].as_str().unwrap()).unwrap();

    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(dir.path().join("other.pem"), other.cert.pem()).unwrap();
    let other = ["submit", "short.toml", "--token", "token", "--to", &url, "--certificate", "other.pem"];
    let other = hol(&other, dir.path());
    assert!(
        !other.status.success() && String::from_utf8_lossy(&other.stderr).contains("certificate"),
        "{other:?}"
    );
    let at = ["--to", &url, "--certificate", "certificate.pem"];
    let without = hol(&[&["submit", "short.toml"][..], &at].concat(), dir.path());
    assert!(String::from_utf8_lossy(&without.stderr).contains("you are not logged in"), "{without:?}");
    let sent = hol(&[&["submit", "short.toml", "--wait", "--token", "token"][..], &at].concat(), dir.path());
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert_eq!(digests(&lab.results(1)), undisturbed(SHORT, dir.path()));
}

/// Malformed HTTP requests, octet by octet. RFC 9112, sections 2.2, 3.2, 5 and 6.3
#[test]
fn malformed_requests_are_refused_and_the_server_continues() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 1);
    let address = lab.url.trim_start_matches("http://").to_owned();
    let long = format!("GET / HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{}\r\n", "X: y\r\n".repeat(1000));
    let both = format!(
        "POST /api/logout HTTP/1.1\r\nHost: {address}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n01234"
    );
    let smuggled = format!(
        "POST /api/logout HTTP/1.1\r\nHost: {address}\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"
    );
    let negative = format!("POST /api/logout HTTP/1.1\r\nHost: {address}\r\nContent-Length: -1\r\n\r\n");
    let table: [(&str, &[u8], &[&str]); 9] = [
        ("nothing of HTTP", b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n", &["HTTP/1.1 400", ""]),
        ("another protocol", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", &["HTTP/1.1 400"]),
        ("no version", b"GET /\r\n\r\n", &["HTTP/1.1 400"]),
        ("no host", b"GET / HTTP/1.1\r\n\r\n", &["HTTP/1.1 400"]),
        ("a header without end", long.as_bytes(), &["HTTP/1.1 431", ""]),
        ("headers without end", many.as_bytes(), &["HTTP/1.1 431"]),
        ("two lengths", both.as_bytes(), &["HTTP/1.1 400"]),
        ("two ways of telling the length", smuggled.as_bytes(), &["HTTP/1.1 400"]),
        ("a negative length", negative.as_bytes(), &["HTTP/1.1 400"]),
    ];
    for (what, request, wanted) in table {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        // The server may close the connection in the middle of a long request.
        let _ = std::io::Write::write_all(&mut stream, request);
        let mut answer = String::new();
        let _ = BufReader::new(stream).read_line(&mut answer);
        assert!(
            wanted
                .iter()
                .any(|wanted| answer.starts_with(wanted) && (!wanted.is_empty() || answer.is_empty())),
            "{what}: {answer:?}"
        );
        assert_eq!(lab.ask("GET", "/api/me", None).0, 200, "{what}");
    }
}

/// Returns whether a process writes results. A zombie does not count.
fn is_hol_run(pid: Pid) -> bool {
    for _ in 0..50 {
        let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        if !String::from_utf8_lossy(&line).contains("--with-parent") {
            return false;
        }
        sleep(POLL_INTERVAL);
    }
    true
}

/// Records of all messages fill a disk of 24 MiB; after a file is removed, the experiment continues.
#[test]
#[ignore = "needs root: it mounts a small disk in a namespace of its own"]
fn experiment_that_fails_on_a_full_disk_continues_with_space() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start_on_small_disk(&dir.path().join("state"), 24);
    let text = SHORT.replace("[sweep]", "records = 'all'\n[sweep]");
    let first = lab.submit(&text, &json!({ "cores": 1 }));
    // The free space is less than one run writes.
    let ballast = lab.state.join("ballast");
    let fill = || {
        let mut file = fs::File::create(&ballast).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    };
    fill();
    let failed = lab.until_state(first, "failed");
    assert!(failed["why"].as_str().unwrap().starts_with("disk full: "), "{failed}");
    assert_eq!(lab.ask("GET", "/api/machine", None).1["free_cores"], 1);
    fill();
    let large = format!("{SHORT}{}", format!("#{}\n", "x".repeat(98)).repeat(9000));
    let (status, refused) = lab.ask("POST", "/api/experiments", Some(&json!({ "text": large })));
    assert_eq!(status, 507, "{refused}");
    assert_eq!(refused["errors"][0]["message"], "the disk of the server is full");
    fs::remove_file(&ballast).unwrap();
    let second = lab.submit(SHORT, &json!({ "cores": 1 }));
    lab.until_state(second, "done");
    assert_eq!(lab.act(first, "start"), 200);
    lab.until(first, |experiment| experiment["progress"]["runs"].as_u64() > Some(2));
    lab.until(first, |experiment| ["done", "failed"].contains(&experiment["state"].as_str().unwrap()));
    fill();
    assert_eq!(lab.ask("DELETE", &format!("/api/experiments/{first}"), None).0, 204);
    assert_eq!(lab.ask("GET", &format!("/api/experiments/{first}"), None).0, 404);
}

/// A client that sends a whole body before it reads the response, such as curl 7.88, gets the response.
#[test]
fn body_that_is_too_large_is_refused_with_json_over_http2() {
    const PART: usize = 16 << 10;
    const PARTS: usize = 1000;
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 1);
    let exchange = async {
        let connection = TcpStream::connect(lab.url.strip_prefix("http://").unwrap()).await.unwrap();
        let (client, connection) = h2::client::handshake(connection).await.unwrap();
        tokio::spawn(connection);
        let request = Request::post(format!("{}/api/experiments", lab.url));
        let request = request.header("content-type", "application/json").body(()).unwrap();
        let (response, mut body) = client.ready().await.unwrap().send_request(request, false).unwrap();
        for part in 1..=PARTS {
            body.reserve_capacity(PART);
            while body.capacity() < PART {
                poll_fn(|context| body.poll_capacity(context)).await.unwrap().unwrap();
            }
            body.send_data(Bytes::from_static(&[b' '; PART]), part == PARTS).unwrap();
        }
        let mut response = response.await.unwrap();
        let mut text = Vec::new();
        while let Some(part) = response.body_mut().data().await {
            text.extend(part.unwrap());
        }
        (response.status().as_u16(), serde_json::from_slice::<Value>(&text).unwrap())
    };
    let (status, refused) = tokio::runtime::Runtime::new().unwrap().block_on(exchange);
    assert_eq!(status, 413);
    assert_eq!(refused["errors"][0]["cure"], "send less at a time");
}
