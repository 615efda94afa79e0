//! The channel between the host and an interactive guest in QEMU: memory behind the mailbox, backed by a file
//! of the host. Host and guest take turns, and each overwrites what the other has written.
//!
//! A guest that has written a message writes to a gate, a pipe that stays full until the host has read the message: QEMU blocks in the
//! middle of that instruction. Pausing the machine would not do: before QEMU's main thread handles the pause, it may consider the guest
//! idle and set its clock to the next timer. There are two gates, used in turn, so that the host can fill one again while the guest waits
//! at the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::mailbox;

/// Address of the shared memory in the guest's physical memory.
pub(crate) const ADDRESS: u64 = mailbox::ADDRESS + mailbox::SIZE;
/// Size of the shared memory in octets.
pub(crate) const SIZE: u64 = 4 << 20;

/// I/O ports of the gates, at which the guest waits for the host.
pub(crate) const GATE_PORTS: [u64; 2] = [0xe9, 0xea];

/// Offset of the count of the host's interrupts, which the guest reads during its turn.
const INTERRUPTS_OFFSET: u64 = 0;
/// Offset of the fragment's kind (0 if there is no fragment), which the length of the fragment follows.
const HEADER_OFFSET: u64 = 8;
/// Offset of the content of the fragment.
const TEXT_OFFSET: u64 = 24;
/// The largest content of a fragment, in octets.
pub(crate) const MAX_FRAGMENT: usize = (SIZE - TEXT_OFFSET) as usize;

/// The kind of a fragment in the shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FragmentKind {
    /// The fragment is a step that the guest is to perform.
    Step = 1,
    /// The fragment is a part of a guest's message, but not the last part.
    Part = 2,
    /// The fragment is the last part of a guest's message.
    End = 3,
}

/// The kinds of fragments of which a guest's message consists.
pub(crate) const MESSAGE_FRAGMENTS: [FragmentKind; 2] = [FragmentKind::Part, FragmentKind::End];

/// The memory that the host shares with an interactive guest, as seen by either of them.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    memory: File,
    /// Offset of the shared memory in the file `memory`.
    begin: u64,
}

impl SharedMemory {
    /// Opens the shared memory that starts at octet `begin` of a file.
    pub(crate) const fn open_at(begin: u64, memory: File) -> Self {
        Self { memory, begin }
    }

    /// Writes a fragment of at most [`MAX_FRAGMENT`] octets.
    pub(crate) fn write(&self, kind: FragmentKind, text: &[u8]) -> io::Result<()> {
        assert!(text.len() <= MAX_FRAGMENT, "a fragment of {} octets is too long", text.len());
        self.memory.write_all_at(text, self.begin + TEXT_OFFSET)?;
        self.put(HEADER_OFFSET + 8, text.len() as u64)?;
        self.put(HEADER_OFFSET, kind as u64)
    }

    /// Removes the fragment and returns it, if it is of one of these kinds; otherwise returns `None`.
    pub(crate) fn take(&self, kinds: &[FragmentKind]) -> io::Result<Option<(FragmentKind, Vec<u8>)>> {
        let written_kind = self.get(HEADER_OFFSET)?;
        let Some(kind) = kinds.iter().copied().find(|kind| *kind as u64 == written_kind) else {
            return Ok(None);
        };
        let length = self.get(HEADER_OFFSET + 8)?.min(MAX_FRAGMENT as u64);
        let mut text = vec![0; length as usize];
        self.memory.read_exact_at(&mut text, self.begin + TEXT_OFFSET)?;
        self.put(HEADER_OFFSET, 0)?;
        Ok(Some((kind, text)))
    }

    /// Interrupts the guest's current step.
    pub(crate) fn interrupt(&self) -> io::Result<()> {
        self.put(INTERRUPTS_OFFSET, self.interrupt_count()?.wrapping_add(1))
    }

    /// Returns the number of interrupts by the host so far.
    pub(crate) fn interrupt_count(&self) -> io::Result<u64> {
        self.get(INTERRUPTS_OFFSET)
    }

    fn get(&self, place: u64) -> io::Result<u64> {
        let mut octets = [0; 8];
        self.memory.read_exact_at(&mut octets, self.begin + place)?;
        Ok(u64::from_le_bytes(octets))
    }

    fn put(&self, place: u64, number: u64) -> io::Result<()> {
        self.memory.write_all_at(&number.to_le_bytes(), self.begin + place)
    }
}

/// Splits a message into fragments with their kinds.
pub(crate) fn split_into_fragments(message: &[u8]) -> impl Iterator<Item = (FragmentKind, &[u8])> {
    let number = message.len().div_ceil(MAX_FRAGMENT);
    (1..).zip(message.chunks(MAX_FRAGMENT)).map(move |(this, part)| {
        let kind = if this < number { FragmentKind::Part } else { FragmentKind::End };
        (kind, part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the memory as both sides see it; the guest's starts at another offset.
    fn both() -> [SharedMemory; 2] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(ADDRESS + SIZE).unwrap();
        [(); 2].map(|()| SharedMemory::open_at(ADDRESS, file.try_clone().unwrap()))
    }

    #[test]
    fn each_side_receives_a_message_once() {
        let [host, guest] = both();
        assert_eq!(guest.take(&[FragmentKind::Step]).unwrap(), None);
        host.write(FragmentKind::Step, b"step").unwrap();
        assert_eq!(host.take(&MESSAGE_FRAGMENTS).unwrap(), None);
        assert_eq!(guest.take(&[FragmentKind::Step]).unwrap(), Some((FragmentKind::Step, b"step".to_vec())));
        assert_eq!(guest.take(&[FragmentKind::Step]).unwrap(), None);
        host.interrupt().unwrap();
        host.interrupt().unwrap();
        assert_eq!(guest.interrupt_count().unwrap(), 2);
    }

    #[test]
    fn a_long_message_is_sent_in_fragments() {
        let [host, guest] = both();
        let message: Vec<u8> = (0..MAX_FRAGMENT + 3).map(|octet| octet as u8).collect();
        let mut whole = Vec::new();
        for (kind, part) in split_into_fragments(&message) {
            guest.write(kind, part).unwrap();
            let (heard, part) = host.take(&MESSAGE_FRAGMENTS).unwrap().unwrap();
            whole.extend(part);
            assert_eq!(
                heard,
                if whole.len() < message.len() { FragmentKind::Part } else { FragmentKind::End }
            );
        }
        assert!(whole == message);
        assert_eq!(split_into_fragments(b"short").collect::<Vec<_>>(), [(FragmentKind::End, &b"short"[..])]);
    }

    #[test]
    fn lengths_beyond_the_memory_are_errors() {
        let [host, guest] = both();
        guest.write(FragmentKind::End, b"x").unwrap();
        guest.put(HEADER_OFFSET + 8, u64::MAX).unwrap();
        assert_eq!(host.take(&MESSAGE_FRAGMENTS).unwrap().map(|(_, text)| text.len()), Some(MAX_FRAGMENT));
    }
}
