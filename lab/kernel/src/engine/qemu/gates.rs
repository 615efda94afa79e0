//! The host's side of an interactive guest: shared memory, and two named pipes ("gates") that pause the
//! guest. While a pipe is full, QEMU blocks in the guest's write to it until the host reads.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::KernelError;
use crate::shared_memory::{self, GATE_PORTS, SharedMemory};

/// The memory that an interactive guest shares with the host, and both gates, as files of the host.
#[derive(Debug)]
pub(super) struct Gates {
    pub(super) shared_memory: SharedMemory,
    /// The two gates (named pipes): first the one at which the guest will wait next.
    gates: [File; 2],
}

/// Returns the path of the shared memory's file, which is in the directory of a virtual machine.
pub(super) fn memory_path(directory: &Path) -> PathBuf {
    directory.join("exchange")
}

/// Returns the paths of the pipes (gates), which are in the directory of a virtual machine.
pub(super) fn gate_paths(directory: &Path) -> [PathBuf; GATE_PORTS.len()] {
    [0, 1].map(|number| directory.join(format!("gate{number}")))
}

impl Gates {
    /// Creates the files, with both gates full. Writes all octets of the memory; otherwise QEMU would crash if the
    /// disk is full when it uses the memory.
    pub(super) fn create(directory: &Path) -> Result<Self, KernelError> {
        let path = memory_path(directory);
        let problem = |e| KernelError::file("write", &path, e);
        fs::write(&path, vec![0; shared_memory::SIZE as usize]).map_err(problem)?;
        let memory = File::options().read(true).write(true).open(&path).map_err(problem)?;
        let [this, other] = gate_paths(directory).map(|path| {
            // QEMU may have created one already for a machine that was to be restored from another snapshot.
            let _ = fs::remove_file(&path);
            let made = mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(io::Error::from);
            let open = || File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(&path);
            let gate = made.and_then(|()| open()).and_then(|gate| close(&gate).map(|()| gate));
            gate.map_err(|e| KernelError::file("create", &path, e))
        });
        Ok(Self { shared_memory: SharedMemory::open_at(0, memory), gates: [this?, other?] })
    }

    /// Lets the guest pass the gate at which it waits, after filling the other gate. A gate is open while its pipe
    /// is empty.
    pub(super) fn open_next(&mut self) -> io::Result<()> {
        close(&self.gates[1])?;
        self.gates.reverse();
        drain(&self.gates[1])
    }
}

fn close(gate: &File) -> io::Result<()> {
    drain(gate)?;
    repeat_until_would_block(|| (&*gate).write(&[0; 4096]))
}

fn drain(gate: &File) -> io::Result<()> {
    let mut octets = vec![0; 1 << 16];
    repeat_until_would_block(|| (&*gate).read(&mut octets))
}

fn repeat_until_would_block(mut act: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    loop {
        match act() {
            Err(problem) if problem.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(problem) if problem.kind() != ErrorKind::Interrupted => return Err(problem),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_opens_one_gate_once() {
        let directory = tempfile::tempdir().unwrap();
        Gates::create(directory.path()).unwrap();
        let mut gates = Gates::create(directory.path()).unwrap();
        let open = |path: PathBuf| File::options().write(true).custom_flags(O_NONBLOCK).open(path).unwrap();
        let guest = super::gate_paths(directory.path()).map(open);
        let passes = |gate: usize| (&guest[gate]).write(&[0]).is_ok();
        for turn in 0..5 {
            let (this, other) = (turn % 2, (turn + 1) % 2);
            assert!(!passes(this));
            gates.open_next().unwrap();
            assert!(passes(this) && !passes(other), "turn {turn}");
        }
    }
}
