//! The three ways through the wall: a file of the machine with the job, memory for the result, and a port that
//! pauses the machine.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::Trouble;
use crate::mailbox::{ADDRESS, Mail};

/// The name that QEMU gives the file with the job.
pub(crate) const JOB: &str = "opt/headofline/job";

/// The port of QEMU's pvpanic device, and the bit that says that the guest is in trouble: the machine pauses at this
/// very instruction, and may go on later.
const PAUSE: (u64, u8) = (0x505, 1);

/// The job, as JSON.
pub(super) fn job() -> Result<Vec<u8>, Trouble> {
    let path = format!("/sys/firmware/qemu_fw_cfg/by_name/{JOB}/raw");
    fs::read(&path).map_err(|e| format!("cannot read the job from {path}: {e}").into())
}

/// Writes the result to where the host looks for it.
pub(super) fn hand_over(mail: &Mail) -> Result<(), Trouble> {
    let octets = mail.to_octets().or_else(|problem| super::failure(&problem).to_octets());
    let octets = octets.map_err(|problem| problem.to_string())?;
    let memory = OpenOptions::new().write(true).open("/dev/mem")?;
    memory.write_all_at(&octets, ADDRESS).map_err(|e| format!("cannot write to the mailbox: {e}").into())
}

/// Pauses the machine.
pub(super) fn pause() -> Result<(), Trouble> {
    let ports = OpenOptions::new().write(true).open("/dev/port")?;
    let (port, trouble) = PAUSE;
    ports.write_all_at(&[trouble], port).map_err(|e| format!("cannot pause the machine: {e}").into())
}
