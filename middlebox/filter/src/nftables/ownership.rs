//! Exclusive ownership of the table, where the kernel supports it.

use super::kernel::{Kernel, RejectedMessage};
use super::transaction::Transaction;
use crate::FilterError;

/// The flag `NFT_TABLE_F_OWNER` (since Linux 5.12): only the socket that created or adopted the table can change it.
const OWNER_FLAG: u32 = 2;
/// The flag `NFT_TABLE_F_PERSIST` (since Linux 6.9): the table outlives the socket that owns it, and another socket can
/// adopt it.
const PERSIST_FLAG: u32 = 4;

/// Who may change the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Exclusive,
    Shared,
}

impl Ownership {
    /// Returns the flags of a table with this ownership.
    pub fn flags(self) -> u32 {
        match self {
            Self::Exclusive => OWNER_FLAG | PERSIST_FLAG,
            Self::Shared => 0,
        }
    }

    /// Determines whether the kernel supports ownership of tables, with a transaction that has no effect. It uses a
    /// table that cannot exist, because flags may be rejected for an existing table.
    pub fn detect(kernel: &Kernel) -> Result<Self, FilterError> {
        const PROBE_TABLE: &str = "hol.question";
        let mut probe = Transaction::new(PROBE_TABLE);
        probe.create_table(Self::Exclusive.flags());
        match kernel.commit(&probe.finish_without_commit())?.first() {
            None => Ok(Self::Exclusive),
            Some(refusal @ RejectedMessage { sequence: 0, .. }) => Err(refusal.reason(PROBE_TABLE)),
            Some(_) => Ok(Self::Shared),
        }
    }

    /// Returns an error if the table belongs to another socket. Changes nothing.
    pub fn check(self, kernel: &Kernel, table: &str) -> Result<(), FilterError> {
        let mut probe = Transaction::new(table);
        probe.create_table(self.flags());
        match kernel.commit(&probe.finish_without_commit())?.first().map(|refusal| refusal.reason(table)) {
            Some(reason @ FilterError::TableOwned { .. }) => Err(reason),
            _ => Ok(()),
        }
    }
}
