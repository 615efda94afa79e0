//! Runs a [`Computation`] in a child process with limits of memory and time. No text can then exhaust the
//! memory of the server, stop it, or occupy it for long.

use std::io::{self, Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use nix::unistd::alarm;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::{SpooledTempFile, spooled_tempfile_in};

use crate::computation::Computation;
use crate::download::MAX_IN_MEMORY;
use crate::jobs::restrict_environment;
use crate::refusal::{Problem, Refusal};
use crate::server::Access;

/// Name of the subcommand of `hol-serve` that runs a computation.
const SUBCOMMAND: &str = "compute";
/// Number of children at a time.
const MAX_CHILDREN: usize = 2;
/// Maximum time for which a computation waits for others.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// Maximum number of seconds of a child. A request may take this time and [`MAX_WAIT`].
const MAX_LIFETIME: u32 = 35;
/// Maximum number of octets of an answer.
const MAX_ANSWER: u64 = 32 << 20;
/// Maximum number of octets of an error message that are read.
const MAX_MESSAGE: u64 = 4 << 10;
/// Exit code of a child whose answer is a refusal.
const REFUSED: u8 = 3;
/// The program that runs at present, even if its file has been replaced. proc(5)
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The limits of one computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of MiB of memory.
    pub mebibytes: u64,
    /// Maximum number of seconds of processor time.
    pub seconds: u64,
}

impl Limits {
    /// Returns the limits of computations on a server with this kind of access.
    const fn of(access: Access) -> Self {
        match access {
            // The owner of the machine.
            Access::Open => Self { mebibytes: 2048, seconds: 30 },
            Access::Accounts => Self { mebibytes: 70, seconds: 10 },
        }
    }

    /// Limits this process. The alarm ends it even if it waits instead of computing. setrlimit(2), alarm(2)
    fn apply(self) -> io::Result<()> {
        let octets = self.mebibytes << 20;
        let cpu = (self.seconds, self.seconds + 1);
        for (resource, (soft, hard)) in
            [(Resource::Data, (octets, octets)), (Resource::Cpu, cpu), (Resource::Core, (0, 0))]
        {
            setrlimit(resource, Rlimit { current: Some(soft), maximum: Some(hard) })?;
        }
        alarm::set(MAX_LIFETIME);
        Ok(())
    }
}

/// The answer of a computation, as JSON.
pub type Answer = SpooledTempFile;

/// Runs computations in child processes, a few at a time.
#[derive(Debug)]
pub struct Worker {
    /// Whether child processes run the computations; otherwise this process does, without limits.
    has_children: bool,
    limits: Limits,
    /// Directory for long answers.
    directory: PathBuf,
    /// The users for whom children run; `None` is the owner of the machine.
    children: Mutex<Vec<Option<i64>>>,
    child_ended: Condvar,
}

/// Permission to run a child process for a user.
struct Slot<'w>(&'w Worker, Option<i64>);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut children = self.0.children();
        if let Some(place) = children.iter().position(|user| *user == self.1) {
            children.swap_remove(place);
        }
        self.0.child_ended.notify_all();
    }
}

impl Worker {
    pub fn new(access: Access, has_children: bool, directory: PathBuf) -> Self {
        let limits = Limits::of(access);
        Self { has_children, limits, directory, children: Mutex::default(), child_ended: Condvar::new() }
    }

    /// Runs a computation as soon as few others run, and none for the same user.
    pub fn run(&self, user: Option<i64>, computation: &Computation) -> Result<Answer, Refusal> {
        let _slot = self.wait_for_slot(user)?;
        self.run_now(computation)
    }

    /// Runs a computation at once.
    pub fn run_now(&self, computation: &Computation) -> Result<Answer, Refusal> {
        let mut answer = spooled_tempfile_in(MAX_IN_MEMORY, &self.directory);
        if self.has_children {
            self.run_child(computation, &mut answer)?;
        } else {
            answer.write_all(&computation.run()?)?;
        }
        answer.rewind()?;
        Ok(answer)
    }

    fn children(&self) -> MutexGuard<'_, Vec<Option<i64>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_slot(&self, user: Option<i64>) -> Result<Slot<'_>, Refusal> {
        let is_full = |children: &mut Vec<Option<i64>>| {
            children.len() >= MAX_CHILDREN || (user.is_some() && children.contains(&user))
        };
        let waited = self.child_ended.wait_timeout_while(self.children(), MAX_WAIT, is_full);
        let (mut children, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(Refusal::busy("the server is busy with the texts of other requests", 5));
        }
        children.push(user);
        Ok(Slot(self, user))
    }

    fn run_child(&self, computation: &Computation, answer: &mut Answer) -> Result<(), Refusal> {
        let mut command = Command::new(THIS_PROGRAM);
        command.args([SUBCOMMAND, &self.limits.mebibytes.to_string(), &self.limits.seconds.to_string()]);
        restrict_environment(&mut command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        // A child that has reached a limit does not read all input. Its exit status reports the reason.
        let _ =
            serde_json::to_writer(io::BufWriter::new(child.stdin.take().expect("it is piped")), computation);
        let copied = copy_answer(&mut child, answer);
        if !matches!(copied, Ok(0..=MAX_ANSWER)) {
            let _ = child.kill();
        }
        let mut message = String::new();
        let _ = child.stderr.take().expect("it is piped").take(MAX_MESSAGE).read_to_string(&mut message);
        let status = child.wait()?;
        if copied? > MAX_ANSWER {
            return Err(self.refuse(&format!("the answer is longer than {} MiB", MAX_ANSWER >> 20)));
        }
        self.check_status(status, &message, answer)
    }

    /// Returns the refusal in the answer of a child, or the reason why the child ended without an answer.
    fn check_status(&self, status: ExitStatus, message: &str, answer: &mut Answer) -> Result<(), Refusal> {
        let Limits { mebibytes, seconds } = self.limits;
        let signal = |signal: Signal| status.signal() == Some(signal.as_raw());
        if status.success() {
            return Ok(());
        }
        if status.code() == Some(REFUSED.into()) {
            answer.rewind()?;
            // The cause of an internal error is for the operator.
            let _ = io::stderr().write_all(message.as_bytes());
            let refused: RefusedAnswer = serde_json::from_reader(answer).map_err(Refusal::internal)?;
            return Err(refused.into());
        }
        if message.contains("memory allocation of") || message.contains("failed to spawn thread") {
            return Err(self.refuse(&format!("the text needs more than {mebibytes} MiB of memory")));
        }
        if signal(Signal::XCPU) || signal(Signal::ALARM) {
            return Err(self.refuse(&format!("the text needs more than {seconds} s of processor time")));
        }
        if signal(Signal::KILL) {
            return Err(Refusal::busy("the machine has too little memory for the text", 60));
        }
        Err(Refusal::internal(format!("a computation ended with {status}: {message}")))
    }

    /// Returns the refusal (422) for a text that exceeds a limit.
    fn refuse(&self, problem: &str) -> Refusal {
        Refusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            problem,
            "use fewer points, nodes or messages, or use `hol` on your own machine",
        )
    }
}

/// Copies the standard output of a child, but not much more than allowed. Returns the number of octets.
fn copy_answer(child: &mut Child, answer: &mut Answer) -> io::Result<u64> {
    let output = child.stdout.take().expect("it is piped");
    io::copy(&mut output.take(MAX_ANSWER + 1), answer)
}

/// Reads the JSON of an answer.
pub fn read_answer<T: DeserializeOwned>(answer: Answer) -> Result<T, Refusal> {
    serde_json::from_reader(io::BufReader::new(answer)).map_err(Refusal::internal)
}

/// A refusal between processes.
#[derive(Debug, Serialize, Deserialize)]
struct RefusedAnswer {
    status: u16,
    problems: Vec<Problem>,
}

impl From<RefusedAnswer> for Refusal {
    fn from(RefusedAnswer { status, problems }: RefusedAnswer) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, problems, retry_after: None }
    }
}

/// Runs the computation on standard input with limits, and writes the answer to standard output: the child's side of
/// `Worker`.
pub fn run_worker_process(limits: Limits) -> ExitCode {
    match try_compute(limits) {
        Ok(code) => code,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn try_compute(limits: Limits) -> io::Result<ExitCode> {
    limits.apply()?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let computation: Computation = serde_json::from_slice(&input)?;
    drop(input);
    let (answer, code) = match computation.run() {
        Ok(answer) => (answer, ExitCode::SUCCESS),
        Err(Refusal { status, problems, .. }) => {
            let refused = RefusedAnswer { status: status.as_u16(), problems };
            (serde_json::to_vec(&refused)?, ExitCode::from(REFUSED))
        }
    };
    io::stdout().write_all(&answer)?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user whose texts take long does not prevent other users from reading theirs.
    #[test]
    fn children_of_a_user_run_one_after_the_other() {
        let worker = Worker::new(Access::Accounts, true, PathBuf::new());
        let ann = worker.wait_for_slot(Some(1)).ok().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(worker.wait_for_slot(Some(1)).ok().unwrap()));
            drop(worker.wait_for_slot(Some(2)).ok().unwrap());
            assert!(!waiting.is_finished());
            drop(ann);
        });
        let both = [worker.wait_for_slot(None), worker.wait_for_slot(None)];
        assert!(both.iter().all(Result::is_ok) && *worker.children() == [None, None]);
    }

    #[test]
    fn exit_status_determines_the_reason() {
        let worker = Worker::new(Access::Accounts, true, PathBuf::new());
        let refused = |status: i32, message: &str, answer: &str| {
            let mut file = SpooledTempFile::new(MAX_IN_MEMORY);
            file.write_all(answer.as_bytes()).unwrap();
            let refusal = worker.check_status(ExitStatus::from_raw(status), message, &mut file).unwrap_err();
            (refusal.status.as_u16(), refusal.problems[0].message.clone())
        };
        let because = |status: u16, message: &str| (status, message.to_owned());
        let memory = "the text needs more than 70 MiB of memory";
        assert_eq!(refused(6, "memory allocation of 64 bytes failed", ""), because(422, memory));
        let time = "the text needs more than 10 s of processor time";
        assert_eq!(refused(24, "", ""), because(422, time));
        assert_eq!(refused(14, "", ""), because(422, time));
        assert_eq!(refused(9, "", ""), because(503, "the machine has too little memory for the text"));
        assert_eq!(refused(11, "", ""), because(500, "internal error of the server"));
        let own = r#"{"status": 413, "problems": [{"message": "too long", "cure": ""}]}"#;
        assert_eq!(refused(i32::from(REFUSED) << 8, "", own), because(413, "too long"));
    }
}
