//! Tests that no requests make the server and its child processes occupy much memory.

#![expect(clippy::disallowed_methods, reason = "a test samples processes in real time")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, SHORT, add_administrator};
use crate::program::hol_serve;

/// Maximum number of octets that an attack may add to the memory of the idle server.
const MAX_MORE: u64 = 150_000_000;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// Returns a field of a process in octets; 0 if the process has ended. proc(5)
fn field(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibi = value.and_then(|value| value.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibi.unwrap_or(0) << 10
}

/// Returns the largest amount of memory that a process has occupied.
fn max_resident(process: u32) -> u64 {
    field(process, "VmHWM")
}

/// A server with accounts, and a session of its administrator, whose experiments have the limits of all users.
struct Attacked {
    lab: Lab,
    cookie: String,
}

impl Attacked {
    fn start(state: &Path) -> Self {
        add_administrator(state);
        let lab = Lab::start_with(state, 2, &["--proxy"]);
        let login = json!({ "name": "root", "password": "correct horse" });
        let answer = ureq::post(format!("{}/api/login", lab.url)).send_json(login).unwrap();
        let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let attacked = Self { lab, cookie };
        let project = json!({ "name": "lab", "title": "Ours" }).to_string();
        assert_eq!(attacked.post("/api/projects", &project).0, 201);
        attacked
    }

    /// Sends a body as JSON, and returns the status code and the response; 0 if the server closes the connection.
    fn post(&self, path: &str, body: &str) -> (u16, Value) {
        self.post_by(&self.cookie, path, body)
    }

    fn post_by(&self, cookie: &str, path: &str, body: &str) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = agent.post(format!("{}{path}", self.lab.url));
        let request = request.header("content-type", "application/json").header("cookie", cookie);
        let Ok(mut answer) = request.send(body) else { return (0, Value::Null) };
        let text = answer.body_mut().with_config().limit(1 << 28).read_to_string().unwrap_or_default();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Runs `request` on many threads at once. Returns the results, and the octets of memory that the server and its
    /// children occupied together in addition to the idle server.
    fn memory_under<T: Send>(&self, requests: usize, request: impl Fn(usize) -> T + Sync) -> (Vec<T>, u64) {
        let server = self.lab.process.id();
        let resident = || {
            let children = self.lab.jobs().into_iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
            children.chain([server]).map(|process| field(process, "RssAnon")).sum::<u64>()
        };
        let (idle, has_ended) = (resident(), AtomicBool::new(false));
        thread::scope(|scope| {
            let peak = scope.spawn(|| {
                let mut peak = 0;
                while !has_ended.load(Ordering::Relaxed) {
                    peak = resident().max(peak);
                    sleep(SAMPLE_INTERVAL);
                }
                peak
            });
            let threads: Vec<_> = (0..requests)
                .map(|number| {
                    scope.spawn({
                        let request = &request;
                        move || request(number)
                    })
                })
                .collect();
            let results = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            has_ended.store(true, Ordering::Relaxed);
            (results, peak.join().unwrap().saturating_sub(idle))
        })
    }
}

/// Returns the text of an experiment with this number of values on two axes.
fn grid(seeds: usize, delays: usize) -> String {
    let seeds: Vec<String> = (0..seeds).map(|seed| seed.to_string()).collect();
    let delays: Vec<String> = (0..delays).map(|delay| format!("'{delay}ms'")).collect();
    format!(
        "transports = ['tcp']\nmessages = 100\n[sweep]\nseed = [{}]\n'network.delay' = [{}]\n",
        seeds.join(","),
        delays.join(",")
    )
}

/// Returns the text with background flows, which occupy memory in each point.
fn with_flows(count: usize, text: &str) -> String {
    let flows = vec!["{transport='tcp',workload={kind='bulk'}}"; count];
    format!("background=[{}]\n{text}", flows.join(","))
}

/// Returns the text of an experiment whose network is a chain.
fn chain(nodes: usize) -> String {
    let names: Vec<String> = (0..nodes).map(|node| format!("'n{node}'")).collect();
    let links: Vec<String> =
        (1..nodes).map(|node| format!("{{from='n{}',to='n{node}'}}", node - 1)).collect();
    format!(
        "transports=['tcp']\nworkload={{kind='oneway',from='n0',to='n1'}}\nnetwork={{nodes=[{}],links=[{}]}}\n",
        names.join(","),
        links.join(",")
    )
}

/// Texts that take much memory are read one after the other in processes that have limits.
#[test]
fn reading_many_large_texts_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(&dir.path().join("state"));
    let long = format!("{SHORT}#{}", "x".repeat(1_000_000));
    let texts = [grid(100, 100), with_flows(10, &grid(50, 50)), chain(300), long];
    let bodies = texts.map(|text| json!({ "text": text, "estimate": true }).to_string());
    // Most of them take less than a second.
    let number_of_text = |request: usize| if request < 2 { request } else { 2 + request % 2 };
    let (answers, more) =
        attacked.memory_under(8, |number| attacked.post("/api/read", &bodies[number_of_text(number)]));
    println!("8 texts: {} MiB more than idle", more >> 20);
    for (status, answer) in answers {
        let is_limit = [422, 429, 503].contains(&status) && answer["errors"][0]["message"].is_string();
        assert!(status == 200 || is_limit, "{status}: {answer}");
    }
    assert!(more < MAX_MORE, "{more} octets");
    let (status, answer) = attacked.post("/api/read", &bodies[0]);
    assert_eq!((status, &answer["plan"]["points"]), (200, &json!(10_000)), "one of them is read: {answer}");
}

/// Large bodies are received only from users, and a few at a time.
#[test]
fn large_bodies_take_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(&dir.path().join("state"));
    let large = json!({ "name": "x".repeat(6_000_000), "password": "x" }).to_string();
    let paths = ["/api/login", "/api/users", "/api/read", "/api/experiments"];
    let (answers, more) =
        attacked.memory_under(100, |number| attacked.post_by("", paths[number % paths.len()], &large).0);
    println!("100 large bodies of strangers: {} MiB more than idle", more >> 20);
    assert!(answers.iter().all(|status| [0, 401, 413].contains(status)), "{answers:?}");
    assert!(more < MAX_MORE, "{more} octets");
    let large = json!({ "text": "\0".repeat(1_000_000) }).to_string();
    let (answers, more) = attacked.memory_under(50, |_| attacked.post("/api/read", &large).0);
    println!("50 large bodies of a user: {} MiB more than idle", more >> 20);
    assert!(answers.iter().all(|status| [0, 200, 422, 429, 503].contains(status)), "{answers:?}");
    assert!(more < MAX_MORE, "{more} octets");
}

/// Clients that receive long answers slowly, or not at all.
#[test]
fn slow_readers_of_a_long_text_take_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 1);
    let text = format!("{SHORT}{}", format!("#{}\n", "x".repeat(98)).repeat(10_000));
    let id = lab.submit(&text, &json!({ "hold": true }));
    let idle = max_resident(lab.process.id());
    let mut readers = slow_readers(&lab, 200, &format!("/api/experiments/{id}/text"));
    let mut part = [0; 1024];
    readers.iter_mut().for_each(|reader| reader.read_exact(&mut part).unwrap());
    let more = max_resident(lab.process.id()) - idle;
    println!("200 slow readers of 1 MB: {} MiB more than idle", more >> 20);
    assert!(more < MAX_MORE, "{more} octets");
}

/// Sends the same request by many clients, which read nothing.
fn slow_readers(lab: &Lab, count: usize, path: &str) -> Vec<TcpStream> {
    let host = lab.url.strip_prefix("http://").unwrap();
    let mut readers: Vec<_> = (0..count).map(|_| TcpStream::connect(host).unwrap()).collect();
    for reader in &mut readers {
        write!(reader, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    }
    readers
}

/// Each password hash takes 19 MiB.
#[test]
fn many_logins_take_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(&dir.path().join("state"));
    let (answers, more) = attacked.memory_under(40, |number| {
        let login = json!({ "name": format!("name{number}"), "password": "a wrong guess" });
        attacked.post("/api/login", &login.to_string()).0
    });
    println!("40 logins: {} MiB more than idle", more >> 20);
    assert!(answers.iter().all(|status| *status == 401), "{answers:?}");
    assert!(more < MAX_MORE, "{more} octets");
}

/// A text that needs too much memory ends only the process that reads it, and the response says so.
#[test]
fn computation_beyond_its_limit_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(&dir.path().join("state"));
    let body = json!({ "text": with_flows(10, &grid(50, 50)) }).to_string();
    for path in ["/api/read", "/api/experiments", "/api/write"] {
        let (status, answer) = attacked.post(path, &body);
        let message = &answer["errors"][0]["message"];
        assert_eq!((status, message), (422, &json!("the text needs more than 70 MiB of memory")), "{path}");
    }
}

/// Runs a computation in a child process with limits, as the server does. Returns the signal that ended it.
fn signal_of(mebibytes: u64, seconds: u64, task: &Value) -> Option<i32> {
    let mut child = hol_serve();
    child.args(["compute", &mebibytes.to_string(), &seconds.to_string()]);
    child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    let permission = json!({ "programs": false, "live": [], "nodes": 300, "links": 600, "points": 10_000,
        "routes": 250_000, "file_octets": 0, "project": null });
    let computation = json!({ "task": task, "permission": permission });
    serde_json::to_writer(child.stdin.take().unwrap(), &computation).unwrap();
    child.wait().unwrap().signal()
}

/// The animation of a run that takes hours of virtual time at 10 Gbit/s.
#[test]
fn limits_end_the_process_of_a_computation() {
    let text = "transports = ['tcp']\nmessages = 1000\nrepetitions = 1\nnetwork.rate = '10Gbit'\n\
        workload = { kind = 'oneway', size = '10MB', interval = '1s' }\n";
    let task = json!({ "Movie": [{ "name": "a", "text": text, "format": "toml" }, 0, 0] });
    assert_eq!(signal_of(1000, 1, &task), Some(Signal::XCPU.as_raw()));
    let read = json!({ "text": grid(100, 100), "format": "toml", "project": null, "estimate": false });
    assert_eq!(signal_of(32, 60, &json!({ "Read": [read, 1] })), Some(Signal::ABORT.as_raw()));
}

/// A client that reads little and then nothing occupies the memory of one part of the file, not of the whole file.
#[test]
fn slow_readers_of_a_large_file_take_little_memory() {
    const READERS: usize = 16;
    const LARGE: u64 = 242 << 20;
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::start(&dir.path().join("state"), 1);
    let id = lab.submit(SHORT, &json!({ "cores": 1 }));
    lab.until_state(id, "done");
    fs::File::create(lab.results(id).join("large.bin")).unwrap().set_len(LARGE).unwrap();
    let mut readers = slow_readers(&lab, READERS, &format!("/api/experiments/{id}/files/large.bin"));
    let mut part = [0; 1024];
    for _ in 0..1024 {
        readers.iter_mut().for_each(|reader| reader.read_exact(&mut part).unwrap());
    }
    let peak = max_resident(lab.process.id());
    println!("{READERS} slow readers of {LARGE} octets: {} MiB of memory at most", peak >> 20);
    assert!(peak < 150_000_000, "{peak} octets");
}
