//! Restores a machine from a snapshot and runs it until it has results.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::installed_qemu::InstalledQemu;
use super::lockstep;
use super::machine::Machine;
use super::processor_speed::ProcessorSpeed;
use super::snapshot_path::quote_path;
use crate::KernelError;
use crate::engine::contract::Task;
use crate::engine::self_test::HostDisturbance;
use crate::error::MachineFault;
use crate::job::JOB_FILE_NAME;
use crate::mailbox::{ADDRESS, HEADER_LENGTH, Header, MailboxContent};

/// Returns a machine that was restored from the snapshot `state` and has received a task; its files go to
/// `directory`.
pub(super) fn restore_machine(
    state: &Path,
    task: &Task<'_>,
    directory: &Path,
    qemu: &InstalledQemu,
    host: HostDisturbance,
) -> Result<Machine, KernelError> {
    let file = directory.join("job.json");
    fs::write(&file, task.job).map_err(|e| KernelError::file("write", &file, e))?;
    let job = format!("name={JOB_FILE_NAME},file={}", file.display());
    let arguments = ["-fw_cfg", &job, "-incoming", "defer"];
    let pace = qemu.processor_speed(task.root.is_some());
    let mut machine =
        Machine::start(&arguments.map(str::to_owned), &[state], task, directory, (qemu, pace), host)?;
    // QEMU would wait forever for an empty file.
    if fs::metadata(state).map_or(0, |file| file.len()) == 0 {
        return Err(refusal_error(
            "migrate-incoming",
            &format!("the snapshot {} is missing or empty", state.display()),
        ));
    }
    set_capabilities(&mut machine, task)?;
    machine.execute("migrate-incoming", &json!({ "uri": incoming_uri(state)? }))?;
    let mut ended = Value::Null;
    machine.wait_for("restoring", |event, data| {
        let over = event == "MIGRATION" && matches!(data["status"].as_str(), Some("completed" | "failed"));
        if over {
            ended = data["status"].clone();
        }
        over
    })?;
    if ended != "completed" {
        return Err(refusal_error(
            "migrate-incoming",
            &format!("QEMU cannot restore the snapshot {}", state.display()),
        ));
    }
    // The processor thread has been waiting since the machine was created, so the library must have found it by now. At
    // another pace than QEMU's own the clock is right only with the library.
    if pace != ProcessorSpeed::ONE && !lockstep::has_found_processor_thread(directory) {
        return Err(refusal_error("-icount", lockstep::NOT_IN_STEP));
    }
    Ok(machine)
}

/// Sets QEMU's options for snapshots: memory in a file (the root file system and the shared memory) is excluded,
/// and QEMU reports the progress of saving and loading.
pub(super) fn set_capabilities(machine: &mut Machine, task: &Task<'_>) -> Result<(), KernelError> {
    let wanted = [("events", true), ("x-ignore-shared", task.root.is_some() || task.is_interactive)];
    let wanted = wanted.map(|(capability, state)| json!({ "capability": capability, "state": state }));
    machine.execute("migrate-set-capabilities", &json!({ "capabilities": wanted })).map(drop)
}

/// Returns QEMU's argument that makes it load this snapshot.
fn incoming_uri(state: &Path) -> Result<String, KernelError> {
    Ok(format!("exec:cat {}", quote_path(state)?))
}

fn refusal_error(command: &str, message: &str) -> KernelError {
    MachineFault::Refused { command: command.to_owned(), message: message.to_owned() }.into()
}

/// Runs the guest until it ends, as long as `goes_on` returns true; returns the content of its mailbox.
pub(super) fn run_to_end(
    machine: &mut Machine,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<MailboxContent, KernelError> {
    let paused = machine.run_until_paused("running", goes_on);
    paused.and_then(|()| read_mail(machine)).map_err(|problem| problem.with_console(machine.console()))
}

/// Reads the mailbox of a paused machine.
pub(super) fn read_mail(machine: &mut Machine) -> Result<MailboxContent, KernelError> {
    let guest = |problem: String| KernelError::from(MachineFault::Guest(problem));
    let head = Header::parse(&machine.read_memory(ADDRESS, HEADER_LENGTH as u64)?)
        .map_err(|e| guest(e.to_string()))?;
    let octets = machine.read_memory(ADDRESS, head.total_length())?;
    head.split(&octets).map_err(|e| guest(e.to_string()))
}
