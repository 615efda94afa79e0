//! Exclusive ownership of the table, where the kernel supports it.

use super::kernel::{Kernel, Refusal};
use super::transaction::Transaction;
use crate::FilterError;

/// `NFT_TABLE_F_OWNER`, Linux 5.12: only the socket that created or adopted the table can change it.
const OWNER: u32 = 2;
/// `NFT_TABLE_F_PERSIST`, Linux 6.9: the table outlives that socket, and can be adopted.
const PERSIST: u32 = 4;

/// Who may change the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Ours,
    Everybodys,
}

impl Ownership {
    /// Returns the flags of the table.
    pub fn flags(self) -> u32 {
        match self {
            Self::Ours => OWNER | PERSIST,
            Self::Everybodys => 0,
        }
    }

    /// Asks the kernel whether it supports ownership, by a transaction without effect on a table that cannot
    /// exist, because flags may be rejected for an existing one.
    pub fn ask(kernel: &Kernel) -> Result<Self, FilterError> {
        const NOBODYS: &str = "hol.question";
        let mut question = Transaction::new(NOBODYS);
        question.create_table(Self::Ours.flags());
        match kernel.commit(&question.finish_in_vain())?.first() {
            None => Ok(Self::Ours),
            Some(refusal @ Refusal { sequence: 0, .. }) => Err(refusal.reason(NOBODYS)),
            Some(_) => Ok(Self::Everybodys),
        }
    }

    /// Fails if the table belongs to somebody else. Changes nothing.
    pub fn check(self, kernel: &Kernel, table: &str) -> Result<(), FilterError> {
        let mut question = Transaction::new(table);
        question.create_table(self.flags());
        match kernel.commit(&question.finish_in_vain())?.first().map(|refusal| refusal.reason(table)) {
            Some(reason @ FilterError::Owned { .. }) => Err(reason),
            _ => Ok(()),
        }
    }
}
