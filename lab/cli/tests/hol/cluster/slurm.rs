//! SLURM with several nodes, on loopback, with the user of the test.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a cluster takes its time")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than SLURM needs to detect a lost node.
const PATIENCE: Duration = Duration::from_secs(150);

/// The daemons of SLURM, which are stopped with this value.
pub struct Slurm {
    dir: tempfile::TempDir,
    others: Vec<Child>,
    nodes: Vec<Child>,
}

impl Slurm {
    /// Starts a cluster with this many nodes of one processor each, called n1, n2 and so on.
    pub fn start(nodes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), nodes);
        let mut slurm = Self { dir, others: Vec::new(), nodes: Vec::new() };
        let at = slurm.dir.path().to_owned();
        let option = |name: &str, file: &str| format!("--{name}={}", at.join(file).display());
        let munge = [
            "-F".to_owned(),
            "--force".to_owned(),
            option("socket", "munge.sock"),
            option("key-file", "key"),
            option("pid-file", "munged.pid"),
            option("log-file", "munged.log"),
            option("seed-file", "munged.seed"),
        ];
        let munged = slurm.spawn("munged", &munge);
        slurm.others.push(munged);
        until("munge answers", || at.join("munge.sock").exists());
        let controller = slurm.spawn("slurmctld", &["-D".to_owned()]);
        slurm.others.push(controller);
        for number in 1..=nodes {
            let node = slurm.spawn("slurmd", &["-D".to_owned(), "-N".to_owned(), format!("n{number}")]);
            slurm.nodes.push(node);
        }
        until("the nodes are idle", || {
            slurm.ask("sinfo", &["-h", "-N", "-t", "idle", "-o", "%n"]).lines().count() == nodes
        });
        slurm
    }

    /// Returns the path of the configuration, for SLURM_CONF.
    pub fn configuration(&self) -> PathBuf {
        self.dir.path().join("slurm.conf")
    }

    /// Kills a node, as if it lost its power.
    pub fn kill_node(&mut self, number: usize) {
        let name = format!("n{number}");
        let jobs = jobs_on(&name);
        let shells: Vec<_> = jobs.iter().copied().filter_map(parent).collect();
        let keepers: Vec<_> = shells.iter().copied().filter_map(parent).collect();
        self.nodes[number - 1].kill().unwrap();
        [keepers, shells, jobs].concat().into_iter().for_each(kill);
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output =
            Command::new(program).args(arguments).env("SLURM_CONF", self.configuration()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn spawn(&self, program: &str, arguments: &[String]) -> Child {
        let log = || Stdio::from(fs::File::create(self.dir.path().join(format!("{program}.out"))).unwrap());
        Command::new(program)
            .args(arguments)
            .env("SLURM_CONF", self.configuration())
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error} (packages slurm-wlm and munge)"))
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.ask("scancel", &["--state=PENDING,RUNNING", "--full", "-p", "p"]);
        for daemon in self.nodes.iter_mut().chain(self.others.iter_mut().rev()) {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn configure(dir: &Path, nodes: usize) {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = host.split('.').next().unwrap();
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap();
    // All ports are reserved before the first is released, so that no two are equal.
    let listeners: Vec<_> = (0..=nodes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
    let mut text = format!(
        "ClusterName=hol\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser={user}SlurmdUser={user}\
         AuthType=auth/munge\nAuthInfo=socket={at}/munge.sock,cred_expire=5\n\
         StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool-%n\n\
         SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/%n.pid\n\
         SlurmctldLogFile={at}/slurmctld.log\nSlurmdLogFile={at}/%n.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
         SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1\n\
         SlurmdParameters=config_overrides\nReturnToService=2\nSlurmdTimeout=5\nMessageTimeout=5\n\
         MailProg=/bin/true\nJobRequeue=1\n",
        ports[0],
        at = dir.display(),
    );
    for (number, port) in (1..).zip(&ports[1..]) {
        text += &format!(
            "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=500 State=UNKNOWN\n"
        );
        fs::create_dir(dir.join(format!("spool-n{number}"))).unwrap();
    }
    text += "PartitionName=p Nodes=ALL Default=YES MaxTime=60 State=UP\n";
    fs::write(dir.join("slurm.conf"), text).unwrap();
    fs::create_dir(dir.join("state")).unwrap();
    fs::write(dir.join("key"), [7; 128]).unwrap();
    for path in ["key", "."] {
        use std::os::unix::fs::PermissionsExt;
        let mode = if path == "." { 0o755 } else { 0o600 };
        fs::set_permissions(dir.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Returns the processes of jobs on a node that run a part.
pub fn jobs_on(node: &str) -> Vec<Pid> {
    let wanted = format!("SLURMD_NODENAME={node}");
    let has = |path: PathBuf, word: &[u8]| {
        fs::read(path).is_ok_and(|text| text.split(|octet| *octet == 0).any(|one| one == word))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter(|path| has(path.join("environ"), wanted.as_bytes()) && has(path.join("cmdline"), b"--shard"))
        .filter_map(|path| Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?))
        .collect()
}

/// Returns the parent of a process: of a program the shell of its job, of that shell SLURM's process for it.
fn parent(of: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/status", of.as_raw_nonzero())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Pid::from_raw(line.trim().parse().ok()?)
}

pub fn kill(process: Pid) {
    let _ = kill_process(process, Signal::KILL);
}

/// Waits until a condition holds.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        sleep(Duration::from_millis(50));
    }
}
