//! The packet filter's face, until its crate is there.

use hol_base::Time;
use hol_simco::{Change, Rule};

/// Something that puts rules in force.
pub trait PacketFilter: Send {
    /// Makes all changes at once, or none.
    fn apply(&mut self, now: Time, changes: &[Change]) -> Result<(), FilterError>;
    /// Makes exactly these rules hold.
    fn reconcile(&mut self, now: Time, rules: &[Rule]) -> Result<Mended, FilterError>;
}

/// What a filter lacked, and had too much.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mended {
    /// Elements that were added.
    pub missing: usize,
    /// Elements that were removed.
    pub surplus: usize,
}

/// Why a filter did not do what it was told.
#[derive(Debug, thiserror::Error)]
#[error("refused")]
pub struct FilterError;

/// Promises everything and does nothing.
pub struct NullFilter;

impl PacketFilter for NullFilter {
    fn apply(&mut self, _: Time, _: &[Change]) -> Result<(), FilterError> {
        Ok(())
    }
    fn reconcile(&mut self, _: Time, _: &[Rule]) -> Result<Mended, FilterError> {
        Ok(Mended::default())
    }
}
