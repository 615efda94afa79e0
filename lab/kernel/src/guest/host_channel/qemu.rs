//! The channel in QEMU: a firmware file contains the job, and memory contains the result and messages. Two
//! I/O ports are gates at which the guest waits for its turn, and a third one pauses the machine.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use nix::libc::{c_ulong, ioctl};

use super::contract::{HostChannel, encode};
use crate::guest::GuestError;
use crate::guest::module::load;
use crate::job::JOB_FILE_NAME;
use crate::mailbox::{ADDRESS, MailboxContent};
use crate::modules;
use crate::shared_memory::{self, FragmentKind, SharedMemory};

/// The I/O port of QEMU's pvpanic device, and the bit that reports a crash. When this bit is written, the machine
/// pauses at this very instruction, and the host may resume it later.
const PVPANIC: (u64, u8) = (0x505, 1);

/// The device with the root image, which contains the user's programs.
const ROOT_DEVICE: &str = "/dev/pmem0";
/// ioctl number that drops the cached content of a block device.
const BLKFLSBUF: c_ulong = 0x1261;

/// Number of gates (pipes that pause the guest) that this guest has passed.
static GATES_PASSED: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

/// Waits until the device [`ROOT_DEVICE`] exists. Its driver creates it soon after the driver is loaded.
pub(in crate::guest) fn await_root() -> Result<(), GuestError> {
    const POLL_INTERVAL: Duration = Duration::from_millis(10);
    for _ in 0..1000 {
        if Path::new(ROOT_DEVICE).exists() {
            return Ok(());
        }
        std::thread::park_timeout(POLL_INTERVAL);
    }
    let cause = "this kernel has no driver for persistent memory (nfit, nd_pmem)";
    Err(format!("{ROOT_DEVICE} does not appear: {cause}").into())
}

#[derive(Debug)]
/// The channel of a guest in QEMU.
pub(super) struct Qemu;

impl HostChannel for Qemu {
    fn report_boot(&self) -> Result<(), GuestError> {
        pause()
    }

    fn receive_job(&self) -> Result<Vec<u8>, GuestError> {
        load(&modules::file_name(modules::FIRMWARE_CONFIG))?;
        let path = format!("/sys/firmware/qemu_fw_cfg/by_name/{JOB_FILE_NAME}/raw");
        fs::read(&path).map_err(|e| format!("cannot read the job from {path}: {e}").into())
    }

    /// Returns the device, after dropping the kernel's cached blocks of it. They are from the image with which the
    /// machine booted, not from the current one.
    fn root_device(&self) -> Result<&'static str, GuestError> {
        let device = File::open(ROOT_DEVICE).map_err(|e| format!("{ROOT_DEVICE}: {e}"))?;
        #[expect(unsafe_code, reason = "BLKFLSBUF has no safe wrapper")]
        // SAFETY: it takes no argument.
        let flushed = unsafe { ioctl(device.as_raw_fd(), BLKFLSBUF as _, 0) };
        if flushed == 0 {
            return Ok(ROOT_DEVICE);
        }
        Err(format!("cannot read {ROOT_DEVICE} again: {}", std::io::Error::last_os_error()).into())
    }

    fn send(&self, message: &[u8]) -> Result<(), GuestError> {
        let shared_memory = shared_memory()?;
        shared_memory::split_into_fragments(message).try_for_each(|(kind, part)| {
            shared_memory.write(kind, part).map_err(|e| format!("cannot write to the shared memory: {e}"))?;
            pass_gate()
        })
    }

    /// Returns the step that the host wrote before it let the guest pass the gate.
    fn next_step(&self) -> Result<Option<Vec<u8>>, GuestError> {
        let shared_memory = shared_memory()?;
        // An interrupt that arrived after the previous step had ended is dropped.
        INTERRUPTS.store(shared_memory.interrupt_count()?, Ordering::Relaxed);
        Ok(shared_memory.take(&[FragmentKind::Step])?.map(|(_, step)| step))
    }

    fn is_interrupted(&self) -> bool {
        let interrupts = shared_memory().and_then(|shared_memory| Ok(shared_memory.interrupt_count()?));
        interrupts.is_ok_and(|number| INTERRUPTS.swap(number, Ordering::Relaxed) < number)
    }

    fn send_result(&self, mail: &MailboxContent) -> Result<(), GuestError> {
        let octets = encode(mail)?;
        let memory = OpenOptions::new().write(true).open("/dev/mem")?;
        memory.write_all_at(&octets, ADDRESS).map_err(|e| format!("cannot write to the mailbox: {e}").into())
    }

    fn shut_down(&self) -> Result<(), GuestError> {
        pause()
    }
}

fn shared_memory() -> Result<SharedMemory, GuestError> {
    let memory = OpenOptions::new().read(true).write(true).open("/dev/mem")?;
    Ok(SharedMemory::open_at(shared_memory::ADDRESS, memory))
}

/// Waits at the next gate until the host opens it.
fn pass_gate() -> Result<(), GuestError> {
    let gate = shared_memory::GATE_PORTS
        [GATES_PASSED.fetch_add(1, Ordering::Relaxed) % shared_memory::GATE_PORTS.len()];
    put(gate, 0).map_err(|e| format!("cannot wait for the host: {e}").into())
}

/// Pauses the machine.
fn pause() -> Result<(), GuestError> {
    let (port, trouble) = PVPANIC;
    put(port, trouble).map_err(|e| format!("cannot pause the machine: {e}").into())
}

fn put(port: u64, octet: u8) -> io::Result<()> {
    OpenOptions::new().write(true).open("/dev/port")?.write_all_at(&[octet], port)
}
