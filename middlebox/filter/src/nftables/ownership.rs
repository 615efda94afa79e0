//! Whose the table is: ours alone, where the kernel has that.

use super::kernel::{Kernel, Refusal};
use super::transaction::Transaction;
use crate::FilterError;

/// `NFT_TABLE_F_OWNER`, Linux 5.12: nobody changes the table but through the socket that made or adopted it.
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
    /// The flags of the table.
    pub fn flags(self) -> u32 {
        match self {
            Self::Ours => OWNER | PERSIST,
            Self::Everybodys => 0,
        }
    }

    /// Asks the kernel whether we can own a table: without consequences, and about one that nobody can have, since flags
    /// that are refused may be so for what is there.
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

    /// An error if the table belongs to somebody else. Without consequences.
    pub fn check(self, kernel: &Kernel, table: &str) -> Result<(), FilterError> {
        let mut question = Transaction::new(table);
        question.create_table(self.flags());
        match kernel.commit(&question.finish_in_vain())?.first().map(|refusal| refusal.reason(table)) {
            Some(reason @ FilterError::Owned { .. }) => Err(reason),
            _ => Ok(()),
        }
    }
}
