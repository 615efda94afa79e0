//! The process of an experiment: `hol run` or `hol reproduce` in a group of its own, which ends when the server does.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitStatus, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::experiment::Experiment;

/// A longer line is cut: a run that writes without end must not fill the memory.
const LONGEST_LINE: u64 = 64 << 10;

/// Variables that a process of ours gets; whatever else the server has is not its business.
const VARIABLES: [&str; 10] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "HOL_QEMU",
    "HOL_LOCKSTEP",
    "HOL_RUN_LIMIT",
];

/// What is run: the program, and the directory of an experiment.
#[derive(Debug, Clone)]
pub struct Command {
    /// The `hol` that serves.
    pub program: PathBuf,
    /// Where the experiment has its text, its results and its log.
    pub dir: PathBuf,
}

/// A process that runs.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
}

impl Command {
    /// Where the results are.
    pub fn results(&self) -> PathBuf {
        self.dir.join("results")
    }

    /// Whether another process fills the results: one of before that has not ended, or somebody's own.
    pub fn is_busy(&self) -> bool {
        let journal = File::open(self.results().join("runs.jsonl"));
        journal.is_ok_and(|journal| matches!(journal.try_lock(), Err(fs::TryLockError::WouldBlock)))
    }

    /// Starts it. `line` gets what it writes, `exit` how it ended when all is read.
    pub fn start(
        &self,
        experiment: &Experiment,
        text: &str,
        line: impl Fn(String) + Send + 'static,
        exit: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> io::Result<Running> {
        fs::create_dir_all(&self.dir)?;
        let mut command = self.bare();
        match &experiment.study {
            Some(study) => {
                command.args(["reproduce", study]);
                command.args(experiment.quick.then_some("--quick"));
            }
            None => {
                let file = format!("{}.{}", experiment.name, experiment.format.word());
                fs::write(self.dir.join(&file), text)?;
                command.args(["run", &file, "--extend"]);
            }
        }
        command.args(["--out", "results", "--jobs", &experiment.cores.to_string(), "--progress", "json"]);
        command.args(["--with-parent", &process::id().to_string()]);
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let pid = Pid::from_child(&child);
        let stderr = child.stderr.take().expect("it is piped");
        let reader = thread::spawn(move || lines(stderr, line));
        thread::spawn(move || {
            let status = reap(child, pid);
            let _ = reader.join();
            exit(status);
        });
        Ok(Running { pid })
    }

    fn bare(&self) -> process::Command {
        use std::os::unix::process::CommandExt;
        let mut command = process::Command::new(&self.program);
        command.env_clear().envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.current_dir(&self.dir).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Running {
    /// Asks it to keep what it has and to end. Its own children are its own business.
    pub fn ask(&self) {
        // It may have ended by itself.
        let _ = kill_process(self.pid, Signal::TERM);
    }

    /// Ends it and all its children.
    pub fn end(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

/// Draws the report of what an experiment has so far.
pub fn draw(command: &Command) -> io::Result<()> {
    let drawn = command.bare().args(["report", "results"]).stderr(Stdio::null()).status()?;
    if drawn.success() { Ok(()) } else { Err(io::Error::other("`hol report` failed")) }
}

/// Waits for `child`, and ends what it left. Its number is ours until it is reaped, so nobody else's group is hit.
fn reap(mut child: Child, pid: Pid) -> io::Result<ExitStatus> {
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    let _ = kill_process_group(pid, Signal::KILL);
    child.wait()
}

fn lines(stream: impl Read, line: impl Fn(String)) {
    let mut reader = BufReader::new(stream);
    let mut octets = Vec::new();
    while let Ok(1..) = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut octets) {
        line(String::from_utf8_lossy(&octets).trim_end().to_owned());
        octets.clear();
    }
}

/// Adds a line to a log that does not grow for ever.
pub fn log(dir: &Path, line: &str) {
    const LONGEST: u64 = 1 << 20;
    let write = || -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(dir.join("log"))?;
        if file.metadata()?.len() < LONGEST {
            io::Write::write_all(&mut file, format!("{line}\n").as_bytes())?;
        }
        Ok(())
    };
    // A disk that is full ends the run, which says so; its log is not worth more.
    let _ = write();
}
