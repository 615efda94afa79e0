//! A filter without effect.

use hol_base::Time;
use hol_simco::{Change, Rule};

use crate::{Corrections, FilterError, PacketFilter};

/// A packet filter that accepts all changes and does nothing, for measurements without a filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullFilter;

impl PacketFilter for NullFilter {
    fn apply(&mut self, _now: Time, _changes: &[Change]) -> Result<(), FilterError> {
        Ok(())
    }

    fn reconcile(&mut self, _now: Time, _rules: &[Rule]) -> Result<Corrections, FilterError> {
        Ok(Corrections::default())
    }
}
