//! The durable record of a middlebox's policy rules: what was acknowledged survives kill -9, a crash of the machine
//! and a full disk.
//!
//! [`Journal::open`] says which rules there were and goes on behind them; [`Journal::record`] returns when the changes
//! of a batch are on the disk, after one fdatasync, however many they are.
//!
//! ```
//! use hol_journal::Journal;
//!
//! let dir = tempfile::tempdir()?;
//! let (mut journal, rules) = Journal::open(dir.path())?;
//! assert!(rules.is_empty() && journal.torn().is_none());
//! // For each batch of a middlebox, between the packet filter and `Batch::release`:
//! # let (changes, policy) = (&[], hol_simco::Policy::open());
//! journal.record(changes, |agent| policy.name(agent))?;
//! journal.tidy()?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why no embedded database
//! The rules are in memory already, and nobody asks the disk for one of them: what is wanted is a log and now and then
//! a smaller one. redb 4.5 and fjall 3.1 were measured against a plain append with rules of 96 octets. The disk's
//! fdatasync bounds a batch of one rule in all three. Where there is no sync to wait for (tmpfs), a batch costs
//!
//! | rules a batch | append | redb | fjall |
//! | --- | --- | --- | --- |
//! | 1 | 1 µs | 26 µs | 1 µs |
//! | 64 | 9 µs | 71 µs | 27 µs |
//! | 1024 | 118 µs | 603 µs | 463 µs |
//!
//! redb copies the pages on the way to a leaf, fjall brings 45 crates and threads of its own. With either, "the disk is
//! full" and "fsync has failed" would be what the library makes of them; here they are [`JournalError::Refused`], after
//! which the journal goes on, and [`JournalError::Broken`], after which it never does.
//!
//! # On the disk
//! The directory holds *segments*, `journal.0000000001` and so on, each a header and *frames*. A frame is a batch: whole
//! or void.
//!
//! ```text
//! segment   "hol:rule" | version 1 | start 1 | 0 2 | crc32c 4     start: from nothing, or from the segment before
//! frame     mark 4 | crc32c 4 | length 4 | entries                the checksum is of all behind it
//! entry     kind 1 | length 2 | a rule as it now is, or the PID of one that has ended
//! ```
//!
//! Numbers are big-endian; a rule is written as [`hol_simco::Rule::record`] says. Octets at the end of the last segment
//! that are no whole frame are what was being written when the machine stopped; they are cut off. Anything else that is
//! wrong is [`JournalError::Damaged`].
//!
//! When more entries are superseded than not, a new segment begins, and a thread writes what the older ones come to into
//! one that begins from nothing. It gets its name when it is on the disk, and only then the older ones go.

mod append;
mod bits;
mod compaction;
mod entry;
mod error;
mod frame;
mod journal;
mod lasting;
mod reading;
mod recovery;
mod segment;

pub use error::{JournalError, Torn};
pub use hol_simco::Recorded;
pub use journal::{Durability, Journal};
pub use reading::read;
