//! The durable record of a middlebox's policy rules: acknowledged rules survive kill -9, a crash of the
//! machine and a full disk.
//!
//! [`Journal::open`] returns the recorded rules and continues after them; [`Journal::record`] returns when
//! all changes of a batch are on the disk, after one fdatasync.
//!
//! ```
//! use hol_journal::Journal;
//!
//! let dir = tempfile::tempdir()?;
//! let (mut journal, rules) = Journal::open(dir.path())?;
//! assert!(rules.is_empty() && journal.truncated_tail().is_none());
//! // For each batch of a middlebox, between the packet filter and `Batch::release`:
//! # let (changes, policy) = (&[], hol_simco::Policy::permissive());
//! journal.record(changes, |agent| policy.name(agent))?;
//! journal.compact_if_due()?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why no embedded database
//! The rules are in memory, and none is read from disk individually: what is needed is a log that is
//! compacted now and then. redb 4.5 and fjall 3.1 were compared with a plain append, with rules of 96 octets.
//! For a batch of one rule the disk's fdatasync dominates in all three. Without sync (tmpfs), a batch costs
//!
//! | rules per batch | append | redb | fjall |
//! | --- | --- | --- | --- |
//! | 1 | 1 µs | 26 µs | 1 µs |
//! | 64 | 9 µs | 71 µs | 27 µs |
//! | 1024 | 118 µs | 603 µs | 463 µs |
//!
//! redb copies the pages on the path to a leaf; fjall adds 45 crates and its own threads. With either, the
//! library would decide what "disk full" and "fsync failed" mean; here they are [`JournalError::Refused`],
//! after which the journal continues, and [`JournalError::Broken`], after which it never does.
//!
//! # On the disk
//! The directory has *segments*, `journal.0000000001` and so on, each a header and *frames*. A frame contains a
//! batch, and is void if it is incomplete.
//!
//! ```text
//! segment   "hol:rule" | version 1 | start 1 | zero 2 | crc32c 4
//! frame     "\xF5hol" | crc32c 4 | length 4 | sequence 8 | crc32c of the previous frame 4 | entries
//! entry     kind 1 | length 2 | the current state of a rule, or the PID of one that has ended
//! ```
//!
//! The numbers are lengths in octets. `start` states whether a segment contains all rules or continues the
//! previous segment. The checksum of a frame covers everything after it. The *mark*, a file of its own, has the
//! segment, the sequence and the checksum of the last frame that was on the disk.
//!
//! Numbers are big-endian; [`hol_simco::Rule::record`] defines the format of a rule. An incomplete frame at
//! the end of the last segment, behind the mark, was being written when the machine stopped, and is cut off. If
//! the journal ends before the mark, acknowledged records are missing: [`JournalError::Missing`]. Any other
//! error is [`JournalError::Damaged`].
//!
//! The mark is written after each sync, but synced only by [`Journal::sync_mark`], for example once a second, so
//! that not every batch waits for the disk twice. A crash of the machine in between sets the mark back; a loss of
//! the records after the older mark is then not noticed.
//!
//! When more entries are superseded than not, and they occupy 8 MiB or a quarter of the free space, a new
//! segment starts, and a thread merges the older segments into one that contains all rules. The new segment gets its
//! name when it is on the disk; only then the older segments are removed.

mod appender;
mod compaction;
mod current_entries;
mod entry;
mod error;
mod frame;
mod journal;
mod mark;
mod reader;
mod recovery;
mod replica;
mod segment;
mod single_bit_error;
mod usage;

pub use error::{JournalError, TruncatedTail, is_disk_full};
pub use hol_simco::RecordedRule;
pub use journal::{Durability, Journal};
pub use reader::read;
pub use replica::{Replica, write_entry};
