//! The process of an experiment: `hol run` or `hol reproduce` in its own process group, which is killed when the server dies.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use hol_lab::{Permission, WorldName};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use serde::de::DeserializeOwned;

use crate::computation::{Computation, NamedText, PointSummary, Task};
use crate::directory::resolve_inside;
use crate::experiment::Experiment;
use crate::refusal::Refusal;
use crate::worker::{Worker, read_answer};

/// Maximum number of octets of a line of output; longer lines are split, to limit the use of memory.
const MAX_LINE_LENGTH: u64 = 64 << 10;

/// Maximum number of octets of the project's files that are copied for an experiment: the size of a project's folder.
const MAX_COPIED_OCTETS: u64 = 1 << 30;

/// Name of the directory with copies of the project's files, next to the experiment file. `hol` looks there for
/// `project:PATH`.
const COPIES_DIRECTORY: &str = "project";

/// Name of the file with the commands of a shell, as an experiment.
const RECORD_FILE: &str = "recorded.toml";

/// Environment variables passed to processes; all others are removed.
const PASSED_VARIABLES: [&str; 10] = [
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

/// The program and the directory for the processes of an experiment.
#[derive(Debug, Clone)]
pub struct RunnerCommand {
    /// Path of `hol`.
    pub program: PathBuf,
    /// The directory with the text, the results and the log of the experiment.
    pub dir: PathBuf,
    /// The resources of this machine that the experiment may use, including the directory of its project's files.
    pub permission: Permission,
    /// Reads the text of the experiment.
    pub worker: Arc<Worker>,
}

/// The running process of an experiment.
#[derive(Debug, Clone, Copy)]
pub struct RunningProcess {
    pid: Pid,
}

impl RunnerCommand {
    /// Returns the directory of the results.
    pub fn results(&self) -> PathBuf {
        self.dir.join("results")
    }

    /// Returns whether another process writes the results: an earlier process that has not ended, or a process that a
    /// user has started.
    pub fn results_are_locked(&self) -> bool {
        let journal = File::open(self.results().join("runs.jsonl"));
        journal.is_ok_and(|journal| matches!(journal.try_lock(), Err(fs::TryLockError::WouldBlock)))
    }

    /// Starts the process of an experiment. Calls `line` with each line that the process writes and, after the last
    /// line, `exit` with the exit status.
    pub fn start(
        &self,
        experiment: &Experiment,
        text: &str,
        line: impl Fn(String) + Send + 'static,
        exit: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> Result<RunningProcess, Refusal> {
        let mut command = self.base_command();
        match &experiment.study {
            Some(study) => {
                fs::create_dir_all(&self.dir)?;
                command.args(["reproduce", study]);
                command.args(experiment.quick.then_some("--quick"));
            }
            None => {
                let (file, _) = self.write_files(&self.dir, experiment, text, 0)?;
                command.args(["run", &file, "--extend"]);
            }
        }
        command.args(["--out", "results", "--jobs", &experiment.cores.to_string(), "--progress", "json"]);
        command.args(["--with-parent", &process::id().to_string()]);
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let pid = Pid::from_child(&child);
        let stderr = child.stderr.take().expect("standard error is piped");
        let reader = thread::spawn(move || read_lines(stderr, line));
        thread::spawn(move || {
            let status = reap(child, pid);
            let _ = reader.join();
            exit(status);
        });
        Ok(RunningProcess { pid })
    }

    /// Returns the directory in which the experiment's shell writes files.
    pub fn shell_directory(&self) -> PathBuf {
        self.dir.join("shell")
    }

    /// Writes the text for a shell to a separate directory, because the runs may use another version of the
    /// text at the same time. Returns the path of the file, relative to the directory of the shell, and a
    /// summary of the point.
    pub fn write_for_shell(
        &self,
        experiment: &Experiment,
        text: &str,
        point: usize,
    ) -> Result<(PathBuf, PointSummary), Refusal> {
        let own = Path::new("shell-experiment");
        let (file, summary) = self.write_files(&self.dir.join(own), experiment, text, point)?;
        Ok((Path::new("..").join(own).join(file), summary))
    }

    /// Starts a shell on the network of a point of the experiment in `file`. Calls `line` with each line of output and,
    /// after the last line, `exit` with the exit status.
    pub fn start_shell(
        &self,
        file: &Path,
        point: usize,
        line: impl Fn(String) + Send + Sync + 'static,
        exit: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> Result<(RunningProcess, ChildStdin), Refusal> {
        let directory = self.shell_directory();
        fs::create_dir_all(&directory)?;
        // Removes the record of an earlier shell.
        match fs::remove_file(directory.join(RECORD_FILE)) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem.into()),
            _ => {}
        }
        let mut command = self.base_command();
        command.current_dir(directory).arg("shell").arg(file);
        let world = WorldName::of_programs().to_string();
        command.args(["--point", &point.to_string(), "--world", &world, "--dialogue", "json"]);
        command.args(["--record", RECORD_FILE, "--with-parent", &process::id().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (sender, started) = sync_channel(1);
        // The kernel kills the process when the thread that started it ends, so this thread waits for it.
        thread::spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(problem) => return drop(sender.send(Err(problem))),
            };
            let pid = Pid::from_child(&child);
            let stdin = child.stdin.take().expect("standard input is piped");
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let _ = sender.send(Ok((RunningProcess { pid }, stdin)));
            thread::scope(|scope| {
                scope.spawn(|| read_lines(stderr.expect("standard error is piped"), &line));
                read_lines(stdout.expect("standard output is piped"), &line);
            });
            exit(reap(child, pid));
        });
        Ok(started.recv().map_err(io::Error::other)??)
    }

    /// Writes the text of an experiment to `directory`, with copies of the project's files that it reads, and returns
    /// the name of the file and a summary of a point. The permissions are checked again with these copies, because the
    /// files of the project may have changed since the submission.
    fn write_files(
        &self,
        directory: &Path,
        Experiment { name, format, .. }: &Experiment,
        text: &str,
        point: usize,
    ) -> Result<(String, PointSummary), Refusal> {
        fs::create_dir_all(directory)?;
        let file = format!("{name}.{}", format.word());
        fs::write(directory.join(&file), text)?;
        let copies = directory.join(COPIES_DIRECTORY);
        match fs::remove_dir_all(&copies) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem.into()),
            _ => {}
        }
        let text = || NamedText { name: name.clone(), text: text.to_owned(), format: *format };
        let named: Vec<String> = self.compute(Task::ProjectFiles(text()), self.permission.clone())?;
        self.copy_files(&named, &copies)?;
        let permission = Permission { project: Some(copies), ..self.permission.clone() };
        Ok((file, self.compute(Task::Point(text(), point), permission)?))
    }

    /// Runs a computation at once, because the scheduler must not wait for requests.
    fn compute<T: DeserializeOwned>(&self, task: Task, permission: Permission) -> Result<T, Refusal> {
        read_answer(self.worker.run_now(&Computation { task, permission })?)
    }

    fn copy_files(&self, named: &[String], to: &Path) -> Result<(), Refusal> {
        let files = self.permission.project.as_deref().unwrap_or(Path::new(""));
        let mut remaining = MAX_COPIED_OCTETS;
        for path in named {
            // If a file was removed meanwhile, reading the text below reports it.
            let Some(from) = resolve_inside(files, path) else { continue };
            let Some(rest) = remaining.checked_sub(fs::metadata(&from)?.len()) else {
                let problem = format!(
                    "the experiment names files with more than {} MiB in total",
                    MAX_COPIED_OCTETS >> 20
                );
                return Err(Refusal::bad_request(problem, "name fewer or smaller files"));
            };
            remaining = rest;
            let to = to.join(path);
            fs::create_dir_all(to.parent().unwrap_or(&self.dir))?;
            fs::copy(from, to)?;
        }
        Ok(())
    }

    fn base_command(&self) -> process::Command {
        use std::os::unix::process::CommandExt;
        let mut command = process::Command::new(&self.program);
        restrict_environment(&mut command);
        command.current_dir(&self.dir).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

/// Removes all variables from a command's environment except those that `hol` uses.
pub fn restrict_environment(command: &mut process::Command) -> &mut process::Command {
    let passed = PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().envs(passed)
}

impl RunningProcess {
    /// Sends SIGTERM: the process saves its results, ends its children, and exits.
    pub fn terminate(&self) {
        // The process may already have ended.
        let _ = kill_process(self.pid, Signal::TERM);
    }

    /// Interrupts the current command, like Ctrl-C.
    pub fn interrupt(&self) {
        let _ = kill_process(self.pid, Signal::INT);
    }

    /// Kills the process and all its children.
    pub fn kill(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

/// Writes the report of an experiment's results so far.
pub fn write_report(command: &RunnerCommand) -> io::Result<()> {
    let output = command.base_command().args(["report", "results"]).output()?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "`hol report results` failed in {}: {}",
        command.dir.display(),
        reason.trim()
    )))
}

/// Waits for `child`, and kills the other processes of its group. The PID is not reused before the child is reaped, so
/// no other group can be killed.
fn reap(mut child: Child, pid: Pid) -> io::Result<ExitStatus> {
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    let _ = kill_process_group(pid, Signal::KILL);
    child.wait()
}

fn read_lines(stream: impl Read, line: impl Fn(String)) {
    let mut reader = BufReader::new(stream);
    let mut octets = Vec::new();
    while let Ok(1..) = reader.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut octets) {
        line(String::from_utf8_lossy(&octets).trim_end().to_owned());
        octets.clear();
    }
}

/// Appends a line to a log of limited size.
pub fn append_to_log(dir: &Path, line: &str) {
    /// Size of a log in octets from which on no more lines are appended.
    const MAX_LOG_SIZE: u64 = 1 << 20;
    let write = || -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(dir.join("log"))?;
        if file.metadata()?.len() < MAX_LOG_SIZE {
            io::Write::write_all(&mut file, format!("{line}\n").as_bytes())?;
        }
        Ok(())
    };
    // Ignores a full disk, which the run reports by itself.
    let _ = write();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::permission_for_users;
    use crate::server::Access;

    const TEXT: &str = "transports = ['tcp']\ntopology = 'project:nets/two.ns'\nworkload = { kind = 'oneway', size = '100B', from = 'a', to = 'b' }\n";
    const SCRIPT: &str = "source names.tcl\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\nset l [$ns duplex-link $a $b 1Mb 5ms DropTail]\n";

    #[test]
    fn project_files_are_checked_again_when_a_run_starts() {
        let root = tempfile::tempdir().unwrap();
        let nets = root.path().join("files/nets");
        fs::create_dir_all(&nets).unwrap();
        fs::write(nets.join("two.ns"), SCRIPT).unwrap();
        fs::write(nets.join("names.tcl"), "set loss 0\n").unwrap();
        let permission = Permission { project: Some(root.path().join("files")), ..permission_for_users(&[]) };
        let dir = root.path().join("experiment");
        let worker = Arc::new(Worker::new(Access::Accounts, false, root.path().to_owned()));
        let command = RunnerCommand { program: PathBuf::new(), dir: dir.clone(), permission, worker };
        let experiment = Experiment { name: "two".to_owned(), ..crate::mail::experiment_for_tests() };
        assert_eq!(command.write_files(&dir, &experiment, TEXT, 0).unwrap().0, "two.toml");
        // A file that the script sources is copied, too.
        let copy = || fs::read_to_string(dir.join("project/nets/names.tcl")).unwrap();
        assert_eq!(copy(), "set loss 0\n");
        fs::write(nets.join("names.tcl"), "set loss 1\n").unwrap();
        assert_eq!(copy(), "set loss 0\n", "a run has what there was at its start");
        for hostile in ["source /etc/passwd\n", "source ../../secret.tcl\n", "$b append-agent x\n"] {
            fs::write(nets.join("names.tcl"), hostile).unwrap();
            let refusal = command.write_files(&dir, &experiment, TEXT, 0).unwrap_err();
            assert!(!refusal.to_string().contains("root:"), "{hostile}: {refusal}");
        }
        fs::remove_file(nets.join("names.tcl")).unwrap();
        assert!(command.write_files(&dir, &experiment, TEXT, 0).is_err());
    }
}
