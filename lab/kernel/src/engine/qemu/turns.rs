//! What a machine that stays has on the host: the memory of its exchange, and its gates, which are pipes. A gate is shut while its
//! pipe is full, for QEMU waits until there is room for what the guest writes.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::KernelError;
use crate::exchange::{self, Exchange, GATES};

/// Both sides take turns.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) exchange: Exchange,
    /// The one that the guest comes to next, and the one behind it.
    gates: [File; 2],
}

/// The memory, in the directory of a machine.
pub(super) fn memory(directory: &Path) -> PathBuf {
    directory.join("exchange")
}

/// The pipes there.
pub(super) fn gates(directory: &Path) -> [PathBuf; GATES.len()] {
    [0, 1].map(|number| directory.join(format!("gate{number}")))
}

impl Turns {
    /// Lays all of it there, with the gates shut. The memory is there whole: QEMU would die of a disk that is full later.
    pub(super) fn lay(directory: &Path) -> Result<Self, KernelError> {
        let path = memory(directory);
        let problem = |e| KernelError::file("write", &path, e);
        fs::write(&path, vec![0; exchange::SIZE as usize]).map_err(problem)?;
        let memory = File::options().read(true).write(true).open(&path).map_err(problem)?;
        let [this, other] = gates(directory).map(|path| {
            // A machine that was to go on from another snapshot may have left one.
            let _ = fs::remove_file(&path);
            let made = mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(io::Error::from);
            let open = || File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(&path);
            let gate = made.and_then(|()| open()).and_then(|gate| shut(&gate).map(|()| gate));
            gate.map_err(|e| KernelError::file("create", &path, e))
        });
        Ok(Self { exchange: Exchange::at(0, memory), gates: [this?, other?] })
    }

    /// Lets the guest through the gate where it is. The one behind it was open, and is shut first.
    pub(super) fn give(&mut self) -> io::Result<()> {
        shut(&self.gates[1])?;
        self.gates.reverse();
        clear(&self.gates[1])
    }
}

fn shut(gate: &File) -> io::Result<()> {
    clear(gate)?;
    until_it_would_wait(|| (&*gate).write(&[0; 4096]))
}

fn clear(gate: &File) -> io::Result<()> {
    let mut octets = vec![0; 1 << 16];
    until_it_would_wait(|| (&*gate).read(&mut octets))
}

fn until_it_would_wait(mut act: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
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
    fn each_turn_lets_the_guest_through_one_gate_once() {
        let directory = tempfile::tempdir().unwrap();
        Turns::lay(directory.path()).unwrap();
        let mut turns = Turns::lay(directory.path()).unwrap();
        let open = |path: PathBuf| File::options().write(true).custom_flags(O_NONBLOCK).open(path).unwrap();
        let guest = gates(directory.path()).map(open);
        let passes = |gate: usize| (&guest[gate]).write(&[0]).is_ok();
        for turn in 0..5 {
            let (this, other) = (turn % 2, (turn + 1) % 2);
            assert!(!passes(this));
            turns.give().unwrap();
            assert!(passes(this) && !passes(other), "turn {turn}");
        }
    }
}
