//! How a guest of QEMU that stays and its host say something to each other: memory behind the mailbox, which is a file of the
//! host's. What is in it is from whoever had the turn last.
//!
//! A guest that has said something writes to a gate, which is shut until the host has heard it: QEMU stands still in the middle
//! of that instruction, whole. To pause the machine would not do: before QEMU's main thread hears of that, it may take the
//! guest for idle and set its clock to the next timer. Of two gates, passed in turn, one can be shut again in peace.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::mailbox;

/// Where the memory begins, in octets.
pub(crate) const ADDRESS: u64 = mailbox::ADDRESS + mailbox::SIZE;
/// How long it is, in octets.
pub(crate) const SIZE: u64 = 4 << 20;

/// The ports that are gates.
pub(crate) const GATES: [u64; 2] = [0xe9, 0xea];

/// How often the host has interrupted; the guest looks at it while it has the turn.
const INTERRUPTS: u64 = 0;
/// What is said, 0 if nothing is, and how long it is.
const HEAD: u64 = 8;
const TEXT: u64 = 24;
/// So many octets are said at a time.
pub(crate) const ROOM: usize = (SIZE - TEXT) as usize;

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What the guest is to do.
    Step = 1,
    /// The beginning of a letter of the guest's, or what follows on it.
    Part = 2,
    /// Its end.
    End = 3,
}

/// What a letter is made of.
pub(crate) const LETTER: [Kind; 2] = [Kind::Part, Kind::End];

/// The memory, as one of both has it.
#[derive(Debug)]
pub(crate) struct Exchange {
    memory: File,
    begin: u64,
}

impl Exchange {
    /// What begins at this octet of a file.
    pub(crate) const fn at(begin: u64, memory: File) -> Self {
        Self { memory, begin }
    }

    /// Says something that fits.
    pub(crate) fn say(&self, kind: Kind, text: &[u8]) -> io::Result<()> {
        assert!(text.len() <= ROOM, "{} octets at a time", text.len());
        self.memory.write_all_at(text, self.begin + TEXT)?;
        self.put(HEAD + 8, text.len() as u64)?;
        self.put(HEAD, kind as u64)
    }

    /// Takes what has been said, if it is one of these.
    pub(crate) fn heard(&self, kinds: &[Kind]) -> io::Result<Option<(Kind, Vec<u8>)>> {
        let said = self.get(HEAD)?;
        let Some(kind) = kinds.iter().copied().find(|kind| *kind as u64 == said) else { return Ok(None) };
        let length = self.get(HEAD + 8)?.min(ROOM as u64);
        let mut text = vec![0; length as usize];
        self.memory.read_exact_at(&mut text, self.begin + TEXT)?;
        self.put(HEAD, 0)?;
        Ok(Some((kind, text)))
    }

    /// Interrupts the guest.
    pub(crate) fn interrupt(&self) -> io::Result<()> {
        self.put(INTERRUPTS, self.interrupts()?.wrapping_add(1))
    }

    /// How often it was interrupted.
    pub(crate) fn interrupts(&self) -> io::Result<u64> {
        self.get(INTERRUPTS)
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

/// A letter in parts that fit, each with what it is.
pub(crate) fn parts(letter: &[u8]) -> impl Iterator<Item = (Kind, &[u8])> {
    let number = letter.len().div_ceil(ROOM);
    (1..).zip(letter.chunks(ROOM)).map(move |(this, part)| {
        let kind = if this < number { Kind::Part } else { Kind::End };
        (kind, part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same memory for both; the guest's begins elsewhere.
    fn both() -> [Exchange; 2] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(ADDRESS + SIZE).unwrap();
        [(); 2].map(|()| Exchange::at(ADDRESS, file.try_clone().unwrap()))
    }

    #[test]
    fn what_one_says_the_other_hears_once() {
        let [host, guest] = both();
        assert_eq!(guest.heard(&[Kind::Step]).unwrap(), None);
        host.say(Kind::Step, b"step").unwrap();
        assert_eq!(host.heard(&LETTER).unwrap(), None);
        assert_eq!(guest.heard(&[Kind::Step]).unwrap(), Some((Kind::Step, b"step".to_vec())));
        assert_eq!(guest.heard(&[Kind::Step]).unwrap(), None);
        host.interrupt().unwrap();
        host.interrupt().unwrap();
        assert_eq!(guest.interrupts().unwrap(), 2);
    }

    #[test]
    fn a_long_letter_comes_in_parts() {
        let [host, guest] = both();
        let letter: Vec<u8> = (0..ROOM + 3).map(|octet| octet as u8).collect();
        let mut whole = Vec::new();
        for (kind, part) in parts(&letter) {
            guest.say(kind, part).unwrap();
            let (heard, part) = host.heard(&LETTER).unwrap().unwrap();
            whole.extend(part);
            assert_eq!(heard, if whole.len() < letter.len() { Kind::Part } else { Kind::End });
        }
        assert!(whole == letter);
        assert_eq!(parts(b"short").collect::<Vec<_>>(), [(Kind::End, &b"short"[..])]);
    }

    #[test]
    fn nobody_is_led_beyond_the_memory() {
        let [host, guest] = both();
        guest.say(Kind::End, b"x").unwrap();
        guest.put(HEAD + 8, u64::MAX).unwrap();
        assert_eq!(host.heard(&LETTER).unwrap().map(|(_, text)| text.len()), Some(ROOM));
    }
}
