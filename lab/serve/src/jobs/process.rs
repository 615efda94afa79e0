//! The process of an experiment: `hol run` or `hol reproduce` in its own process group, which ends with the
//! server.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;

use hol_lab::{Permission, WorldName};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::directory::inside;
use crate::experiment::{Experiment, Format};
use crate::reading;
use crate::refusal::Refusal;

/// Maximum octets of a line; longer ones are cut so as not to fill the memory.
const LONGEST_LINE: u64 = 64 << 10;

/// Maximum octets of the files that an experiment names, of which it gets copies: a project has no more.
const MAX_COPIED: u64 = 1 << 30;

/// The directory of these copies, beside the experiment file, where `hol` looks for `project:PATH`.
const COPIES: &str = "project";

/// The commands of a shell, as an experiment.
const RECORD: &str = "recorded.toml";

/// Environment variables passed to processes; all others are removed.
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

/// The program, and the directory of an experiment.
#[derive(Debug, Clone)]
pub struct RunnerCommand {
    /// The `hol` that serves.
    pub program: PathBuf,
    /// The directory with its text, its results and its log.
    pub dir: PathBuf,
    /// What it may use of this machine, and where its project has its files.
    pub permission: Permission,
}

/// A running process.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    pid: Pid,
}

impl RunnerCommand {
    /// Returns the directory of its results.
    pub fn results(&self) -> PathBuf {
        self.dir.join("results")
    }

    /// Returns whether another process writes the results: an earlier one that has not ended, or a user's
    /// own.
    pub fn is_busy(&self) -> bool {
        let journal = File::open(self.results().join("runs.jsonl"));
        journal.is_ok_and(|journal| matches!(journal.try_lock(), Err(fs::TryLockError::WouldBlock)))
    }

    /// Starts it. `line` gets each line it writes, `exit` its exit status when all is read.
    pub fn start(
        &self,
        experiment: &Experiment,
        text: &str,
        line: impl Fn(String) + Send + 'static,
        exit: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> Result<Running, Refusal> {
        let mut command = self.bare();
        match &experiment.study {
            Some(study) => {
                fs::create_dir_all(&self.dir)?;
                command.args(["reproduce", study]);
                command.args(experiment.quick.then_some("--quick"));
            }
            None => {
                let (file, _) = self.write(&self.dir, &experiment.name, experiment.format, text)?;
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

    /// Where its shell makes files.
    pub fn shell_directory(&self) -> PathBuf {
        self.dir.join("shell")
    }

    /// Writes the text of a shell, apart from that of the runs, which may go on meanwhile with another version of it. Returns the file,
    /// as the shell names it, and the experiment in it.
    pub fn write_for_shell(
        &self,
        experiment: &Experiment,
        text: &str,
    ) -> Result<(PathBuf, hol_lab::Experiment), Refusal> {
        let own = Path::new("shell-experiment");
        let (file, read) = self.write(&self.dir.join(own), &experiment.name, experiment.format, text)?;
        Ok((Path::new("..").join(own).join(file), read))
    }

    /// Starts a shell on the network of one of the points of an experiment in a file. `line` gets each line of output, `exit` the exit
    /// status when all is read.
    pub fn shell(
        &self,
        file: &Path,
        point: usize,
        line: impl Fn(String) + Send + Sync + 'static,
        exit: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> Result<(Running, ChildStdin), Refusal> {
        let directory = self.shell_directory();
        fs::create_dir_all(&directory)?;
        // Removes the record of an earlier shell.
        match fs::remove_file(directory.join(RECORD)) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem.into()),
            _ => {}
        }
        let mut command = self.bare();
        command.current_dir(directory).arg("shell").arg(file);
        let world = WorldName::of_programs().to_string();
        command.args(["--point", &point.to_string(), "--world", &world, "--dialogue", "json"]);
        command.args(["--record", RECORD, "--with-parent", &process::id().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (sender, started) = sync_channel(1);
        // It ends with the thread that starts it, so this thread stays.
        thread::spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(problem) => return drop(sender.send(Err(problem))),
            };
            let pid = Pid::from_child(&child);
            let stdin = child.stdin.take().expect("it is piped");
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let _ = sender.send(Ok((Running { pid }, stdin)));
            thread::scope(|scope| {
                scope.spawn(|| lines(stderr.expect("it is piped"), &line));
                lines(stdout.expect("it is piped"), &line);
            });
            exit(reap(child, pid));
        });
        Ok(started.recv().map_err(io::Error::other)??)
    }

    /// Writes its text into `directory`, with copies of the files of its project that it reads, and returns the name of the file and the
    /// experiment. What was permitted when the text was taken is checked again with these copies: the files of the project may be others
    /// by now.
    fn write(
        &self,
        directory: &Path,
        name: &str,
        format: Format,
        text: &str,
    ) -> Result<(String, hol_lab::Experiment), Refusal> {
        fs::create_dir_all(directory)?;
        let file = format!("{name}.{}", format.word());
        fs::write(directory.join(&file), text)?;
        let copies = directory.join(COPIES);
        match fs::remove_dir_all(&copies) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem.into()),
            _ => {}
        }
        let named = reading::project_files(name, text, format, &self.permission)?;
        self.copy_files(&named, &copies)?;
        let permission = Permission { project: Some(copies), ..self.permission.clone() };
        let read = reading::read(name, text, format, &permission)?;
        Ok((file, read))
    }

    fn copy_files(&self, named: &[String], to: &Path) -> Result<(), Refusal> {
        let files = self.permission.project.as_deref().unwrap_or(Path::new(""));
        let mut left = MAX_COPIED;
        for path in named {
            // One that was removed meanwhile is missed when the text is read again.
            let Some(from) = inside(files, path) else { continue };
            let Some(rest) = left.checked_sub(fs::metadata(&from)?.len()) else {
                let problem = format!("it names files of more than {} MiB", MAX_COPIED >> 20);
                return Err(Refusal::bad(problem, "name fewer or smaller files"));
            };
            left = rest;
            let to = to.join(path);
            fs::create_dir_all(to.parent().unwrap_or(&self.dir))?;
            fs::copy(from, to)?;
        }
        Ok(())
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
    /// Asks it to save its results and to end. It handles its own children.
    pub fn ask(&self) {
        // It may have ended by itself.
        let _ = kill_process(self.pid, Signal::TERM);
    }

    /// Interrupts its current work.
    pub fn interrupt(&self) {
        let _ = kill_process(self.pid, Signal::INT);
    }

    /// Kills it and all its children.
    pub fn end(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

/// Draws the report of an experiment so far.
pub fn draw(command: &RunnerCommand) -> io::Result<()> {
    let drawn = command.bare().args(["report", "results"]).stderr(Stdio::null()).status()?;
    if drawn.success() { Ok(()) } else { Err(io::Error::other("`hol report` failed")) }
}

/// Waits for `child`, and kills its remaining process group. The PID is ours until it is reaped, so no other
/// group is hit.
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

/// Appends a line to a log of limited size.
pub fn log(dir: &Path, line: &str) {
    const LONGEST: u64 = 1 << 20;
    let write = || -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(dir.join("log"))?;
        if file.metadata()?.len() < LONGEST {
            io::Write::write_all(&mut file, format!("{line}\n").as_bytes())?;
        }
        Ok(())
    };
    // A full disk ends the run, which reports it; the log does not matter more.
    let _ = write();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::permission_for_users;

    const TEXT: &str = "transports = ['tcp']\ntopology = 'project:nets/two.ns'\nworkload = { kind = 'oneway', size = '100B', from = 'a', to = 'b' }\n";
    const SCRIPT: &str = "source names.tcl\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\nset l [$ns duplex-link $a $b 1Mb 5ms DropTail]\n";

    #[test]
    fn the_files_of_a_project_are_checked_again_when_a_run_begins() {
        let root = tempfile::tempdir().unwrap();
        let nets = root.path().join("files/nets");
        fs::create_dir_all(&nets).unwrap();
        fs::write(nets.join("two.ns"), SCRIPT).unwrap();
        fs::write(nets.join("names.tcl"), "set loss 0\n").unwrap();
        let permission = Permission { project: Some(root.path().join("files")), ..permission_for_users(&[]) };
        let dir = root.path().join("experiment");
        let command = RunnerCommand { program: PathBuf::new(), dir: dir.clone(), permission };
        assert_eq!(command.write(&dir, "two", Format::Toml, TEXT).unwrap().0, "two.toml");
        // What it sources has a copy, too.
        let copy = || fs::read_to_string(dir.join("project/nets/names.tcl")).unwrap();
        assert_eq!(copy(), "set loss 0\n");
        fs::write(nets.join("names.tcl"), "set loss 1\n").unwrap();
        assert_eq!(copy(), "set loss 0\n", "a run has what there was at its start");
        for hostile in ["source /etc/passwd\n", "source ../../secret.tcl\n", "$b append-agent x\n"] {
            fs::write(nets.join("names.tcl"), hostile).unwrap();
            let refusal = command.write(&dir, "two", Format::Toml, TEXT).unwrap_err();
            assert!(!refusal.to_string().contains("root:"), "{hostile}: {refusal}");
        }
        fs::remove_file(nets.join("names.tcl")).unwrap();
        assert!(command.write(&dir, "two", Format::Toml, TEXT).is_err());
    }
}
