//! QEMU's: a file of the machine with the job, memory for the result, and a port that pauses the machine.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::Door;
use crate::guest::{Trouble, load};
use crate::mailbox::{ADDRESS, Mail};
use crate::modules;

/// The name that QEMU gives the file with the job.
pub(crate) const JOB: &str = "opt/headofline/job";

/// The port of QEMU's pvpanic device, and the bit that says that the guest is in trouble: the machine pauses at this
/// very instruction, and may go on later.
const PAUSE: (u64, u8) = (0x505, 1);

#[derive(Debug)]
pub(super) struct Qemu;

impl Door for Qemu {
    fn booted(&self) -> Result<(), Trouble> {
        pause()
    }

    fn job(&self) -> Result<Vec<u8>, Trouble> {
        load(&modules::file(modules::MAILBOX))?;
        let path = format!("/sys/firmware/qemu_fw_cfg/by_name/{JOB}/raw");
        fs::read(&path).map_err(|e| format!("cannot read the job from {path}: {e}").into())
    }

    fn hand_over(&self, mail: &Mail) -> Result<(), Trouble> {
        let octets = super::octets(mail)?;
        let memory = OpenOptions::new().write(true).open("/dev/mem")?;
        memory.write_all_at(&octets, ADDRESS).map_err(|e| format!("cannot write to the mailbox: {e}").into())
    }

    fn leave(&self) -> Result<(), Trouble> {
        pause()
    }
}

/// Pauses the machine.
fn pause() -> Result<(), Trouble> {
    let ports = OpenOptions::new().write(true).open("/dev/port")?;
    let (port, trouble) = PAUSE;
    ports.write_all_at(&[trouble], port).map_err(|e| format!("cannot pause the machine: {e}").into())
}
