//! QEMU's: a file of the machine with the job, memory for the result and for what is said before that, and ports: two at which
//! the guest waits for its turn, and one that pauses the machine.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use nix::libc::{c_ulong, ioctl};

use super::contract::{Door, octets};
use crate::exchange::{self, Exchange, Kind};
use crate::guest::Trouble;
use crate::guest::module::load;
use crate::job::FILE;
use crate::mailbox::{ADDRESS, Mail};
use crate::modules;

/// The port of QEMU's pvpanic device, and the bit that says that the guest is in trouble: the machine pauses at this
/// very instruction, and may go on later.
const PAUSE: (u64, u8) = (0x505, 1);

/// The device with the image for the user's programs.
const ROOT_DEVICE: &str = "/dev/pmem0";
/// blkdev: forgets what it has in memory of a device.
const BLKFLSBUF: c_ulong = 0x1261;

/// How often we have passed a gate, and how often the host has interrupted us.
static PASSED: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

/// Waits for the device, which its driver makes soon after it is loaded.
pub(in crate::guest) fn await_root() -> Result<(), Trouble> {
    const STEP: Duration = Duration::from_millis(10);
    for _ in 0..1000 {
        if Path::new(ROOT_DEVICE).exists() {
            return Ok(());
        }
        std::thread::park_timeout(STEP);
    }
    let cause = "this kernel has no driver for memory that does not forget (nfit, nd_pmem)";
    Err(format!("{ROOT_DEVICE} does not appear: {cause}").into())
}

#[derive(Debug)]
pub(super) struct Qemu;

impl Door for Qemu {
    fn booted(&self) -> Result<(), Trouble> {
        pause()
    }

    fn job(&self) -> Result<Vec<u8>, Trouble> {
        load(&modules::file(modules::MAILBOX))?;
        let path = format!("/sys/firmware/qemu_fw_cfg/by_name/{FILE}/raw");
        fs::read(&path).map_err(|e| format!("cannot read the job from {path}: {e}").into())
    }

    /// The machine saw another image when it booted, which it has to forget.
    fn root(&self) -> Result<&'static str, Trouble> {
        let device = File::open(ROOT_DEVICE).map_err(|e| format!("{ROOT_DEVICE}: {e}"))?;
        #[expect(unsafe_code, reason = "this request has no safe wrapper")]
        // SAFETY: it takes no argument.
        let flushed = unsafe { ioctl(device.as_raw_fd(), BLKFLSBUF as _, 0) };
        if flushed == 0 {
            return Ok(ROOT_DEVICE);
        }
        Err(format!("cannot look at {ROOT_DEVICE} anew: {}", std::io::Error::last_os_error()).into())
    }

    /// The host has heard it when this returns.
    fn tell(&self, letter: &[u8]) -> Result<(), Trouble> {
        let exchange = exchange()?;
        exchange::parts(letter).try_for_each(|(kind, part)| {
            exchange.say(kind, part).map_err(|e| format!("cannot write to the exchange: {e}"))?;
            pass_gate()
        })
    }

    /// It came before the gate was opened.
    fn next(&self) -> Result<Option<Vec<u8>>, Trouble> {
        let exchange = exchange()?;
        // What comes too late for a step is for none.
        INTERRUPTS.store(exchange.interrupts()?, Ordering::Relaxed);
        Ok(exchange.heard(&[Kind::Step])?.map(|(_, step)| step))
    }

    fn is_interrupted(&self) -> bool {
        let interrupts = exchange().and_then(|exchange| Ok(exchange.interrupts()?));
        interrupts.is_ok_and(|number| INTERRUPTS.swap(number, Ordering::Relaxed) < number)
    }

    fn hand_over(&self, mail: &Mail) -> Result<(), Trouble> {
        let octets = octets(mail)?;
        let memory = OpenOptions::new().write(true).open("/dev/mem")?;
        memory.write_all_at(&octets, ADDRESS).map_err(|e| format!("cannot write to the mailbox: {e}").into())
    }

    fn leave(&self) -> Result<(), Trouble> {
        pause()
    }
}

fn exchange() -> Result<Exchange, Trouble> {
    let memory = OpenOptions::new().read(true).write(true).open("/dev/mem")?;
    Ok(Exchange::at(exchange::ADDRESS, memory))
}

/// Waits until it is our turn.
fn pass_gate() -> Result<(), Trouble> {
    let gate = exchange::GATES[PASSED.fetch_add(1, Ordering::Relaxed) % exchange::GATES.len()];
    put(gate, 0).map_err(|e| format!("cannot wait for the host: {e}").into())
}

/// Pauses the machine.
fn pause() -> Result<(), Trouble> {
    let (port, trouble) = PAUSE;
    put(port, trouble).map_err(|e| format!("cannot pause the machine: {e}").into())
}

fn put(port: u64, octet: u8) -> io::Result<()> {
    OpenOptions::new().write(true).open("/dev/port")?.write_all_at(&[octet], port)
}
