//! A filter without effect.

use hol_base::Time;
use hol_simco::{Change, Rule};

use crate::{Corrections, FilterError, PacketFilter};

/// Accepts everything and does nothing, so that a measurement can omit the filter.
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
