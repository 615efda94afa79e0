//! Runs jobs on this machine's own kernel and real clock. A process does the work of a guest, in network
//! namespaces that end with the process; it changes nothing else on the machine.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use hol_base::Seed;
use hol_network::Ip;
use hol_scenario::{Observer, PacketObserver, Run, Scenario};
use hol_sockets::{Sysctl, kernel_setting, kernel_version, sysctls};
use nix::sched::{CloneFlags, unshare};
use serde_json::{Value, json};

use crate::captured_packet::{self, PacketCapture};
use crate::engine::child::ChildProcess;
use crate::error::{ConsoleOutput, MachineFault};
use crate::guest::variables::{ENGINE_VARIABLE, LOCAL_KERNEL};
use crate::job::Job;
use crate::mailbox::MailboxContent;
use crate::world::{read_mail, transport_settings};
use crate::{KernelError, check, netem};

/// The interval at which a run asks its observer whether to continue.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Returns an error that names the first unsupported feature. A feature is unsupported if no kernel has it, or if
/// this machine would have to be changed for it.
pub fn check_supported(scenario: &Scenario) -> Result<(), KernelError> {
    let unsupported = |what: String, why: String| Err(KernelError::Unsupported { what, why });
    if let Some(program) = scenario.programs.first() {
        let why = "programs would run unconfined on this machine; use --world kernel";
        return unsupported(format!("[[program]] on {:?}", program.node), why.to_owned());
    }
    let kernel = kernel_version();
    check::check_any_kernel(scenario, &kernel)?;
    let mut flows = scenario.flow_specs().map(|flow| flow.transport);
    let measured = flows.next();
    for transport in flows.chain(measured) {
        let all = sysctls(transport, &kernel).unwrap_or_default();
        for Sysctl { name, value } in all.iter().filter(|setting| setting.name.starts_with("module/")) {
            if let Some(now) = kernel_setting(name).filter(|now| now != value) {
                let why = format!(
                    "this transport needs {name} = {value}, but this machine has {now}; set it for the whole machine (`echo {value} > \
                    /sys/{name}`), or use --world kernel"
                );
                return unsupported(transport.to_string(), why);
            }
        }
    }
    let ip = netem::plan(&scenario.network)?.network.ip();
    if ip == Ip::V6 && kernel_setting("net/ipv6/conf/all/forwarding").is_none() {
        return unsupported(
            "network.ip".to_owned(),
            "this machine's kernel has no IPv6; set ip = \"v4\", or use --world kernel".to_owned(),
        );
    }
    Ok(())
}

/// Returns the settings that affect the results: the transport, and settings of the run's namespaces.
pub fn recorded_settings(scenario: &Scenario) -> Value {
    json!(transport_settings(&scenario.transport, &kernel_version()))
}

/// Performs `work` in a temporary network namespace. Returns the error of `work`, or why no namespace can be created,
/// with a remedy.
pub fn in_namespace(work: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), String> {
    let inside = thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|problem| {
            format!(
                "this user may not create network namespaces ({problem}); run hol as root, or in a user namespace: `unshare \
                --map-root-user --net hol …`"
            )
        })?;
        work()
    });
    inside.join().expect("the thread does not panic")
}

/// Runs a scenario as long as the `observer` lets it continue. The observer gets no records; the returned run contains
/// them. `program` is started to perform the run; it is this program, or another one that can act as its guest.
pub fn run(
    program: &Path,
    scenario: &Scenario,
    seed: Seed,
    observer: &mut dyn Observer,
) -> Result<Run, KernelError> {
    let series_ns = observer.interval().map(hol_base::Duration::as_nanos);
    let job = Job { scenario: scenario.clone(), seed: seed.0, capture: false, series_ns, shell: false };
    Ok(perform(program, &job, &mut || observer.goes_on())?.0)
}

/// Runs a scenario and passes its packets to an observer.
pub fn trace(
    program: &Path,
    scenario: &Scenario,
    seed: Seed,
    observer: &mut dyn PacketObserver,
) -> Result<Run, KernelError> {
    let names = scenario.interfaces().map_err(|problem| KernelError::Unsupported {
        what: "network".to_owned(),
        why: problem.to_string(),
    })?;
    let job = Job { scenario: scenario.clone(), seed: seed.0, capture: true, series_ns: None, shell: false };
    let (run, seen) = perform(program, &job, &mut || true)?;
    captured_packet::pass_to_observer(seen, &names, observer);
    Ok(run)
}

fn perform(
    program: &Path,
    job: &Job,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<(Run, PacketCapture), KernelError> {
    let (mail, console) = run_process(program, job, goes_on)?;
    let (mut run, seen) = read_mail(&mail, &job.scenario).map_err(|problem| problem.with_console(console))?;
    if let Some(world_report) = &mut run.summary.world_report {
        // On a machine with a real clock and other work, deviations are only a caution.
        let caution = check::check_valid(&job.scenario, world_report).err();
        world_report.add_caution(caution.map(|problem| {
            format!("{problem}; this machine may be busy: use another machine, or --world kernel")
        }));
    }
    Ok((run, seen))
}

/// Runs the job in a new process. Returns the result that the process sends, and its standard error.
fn run_process(
    program: &Path,
    job: &Job,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<(MailboxContent, ConsoleOutput), KernelError> {
    let input = temporary_file(&serde_json::to_vec(job).expect("a job can be serialised"))?;
    let (mut mail, mut stderr) = (temporary_file(&[])?, temporary_file(&[])?);
    let mut command = Command::new(program);
    command
        .env(ENGINE_VARIABLE, LOCAL_KERNEL)
        .stdin(input)
        .stdout(duplicate_descriptor(&mail)?)
        .stderr(duplicate_descriptor(&stderr)?);
    let mut child = ChildProcess::start(&mut command).map_err(|e| KernelError::file("run", program, e))?;
    while !child.has_ended(CHECK_INTERVAL) {
        if !goes_on() {
            return Err(KernelError::Interrupted);
        }
    }
    let status =
        child.kill_and_wait().map_err(|e| KernelError::file("wait for the process of", program, e))?;
    let console = ConsoleOutput::new(&read_whole(&mut stderr)?);
    let mail = MailboxContent::from_octets(&read_whole(&mut mail)?).map_err(|_| {
        let ended =
            MachineFault::Ended(format!("the process of the run ended with {status} and without a result"));
        KernelError::from(ended).with_console(console.clone())
    })?;
    Ok((mail, console))
}

/// Creates a temporary file that has no name, with the content `octets`.
fn temporary_file(octets: &[u8]) -> Result<File, KernelError> {
    let made = tempfile::tempfile().and_then(|mut file| {
        file.write_all(octets)?;
        file.rewind()?;
        Ok(file)
    });
    made.map_err(|e| KernelError::file("create a file in", &std::env::temp_dir(), e))
}

/// Duplicates the descriptor of a file for another process.
fn duplicate_descriptor(file: &File) -> Result<Stdio, KernelError> {
    let other = file.try_clone().map(Stdio::from);
    other.map_err(|e| KernelError::file("open a file of", &std::env::temp_dir(), e))
}

/// Returns everything that a process wrote to a file.
fn read_whole(file: &mut File) -> Result<Vec<u8>, KernelError> {
    let mut octets = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut octets));
    read.map(|_| octets).map_err(|e| KernelError::file("read a file of", &std::env::temp_dir(), e))
}
