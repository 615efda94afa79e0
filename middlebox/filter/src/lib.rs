//! Packet filters, which enforce the policy rules of a SIMCO middlebox.
//!
//! A [`PacketFilter`] applies the [`Change`]s of a batch, all or none. [`Nftables`] is Linux's own filter,
//! [`NullFilter`] does nothing and is for measurements without a filter, [`RecordingFilter`] is for tests.
//! `docs/simco-filter.md` shows the resulting ruleset.

use hol_base::Time;
use hol_simco::{Change, Rule};

mod config;
mod element;
mod error;
mod flow;
mod footprint;
mod nftables;
mod null_filter;
mod ports;
mod recording_filter;
mod required_elements;
mod shape;

pub use config::{Config, ConfigError, DefaultPolicy, Filtering, Interfaces, Masquerade, Pool};
pub use error::{FilterError, Unsupported};
pub use footprint::{MAX_SHAPES, footprint};
pub use nftables::Nftables;
pub use null_filter::NullFilter;
pub use recording_filter::RecordingFilter;

/// A packet filter that enforces rules.
pub trait PacketFilter: Send {
    /// Applies all changes at once, or none. The end of a rule's lifetime is a change, too; without this change the
    /// filter ends the rule at most five seconds after [`Rule::expires`], on the clock of `now`.
    fn apply(&mut self, now: Time, changes: &[Change]) -> Result<(), FilterError>;

    /// Makes the filter enforce exactly these rules, and returns the corrections that were necessary. If this takes
    /// long, some elements are missing until [`continue_reconciliation`](Self::continue_reconciliation) reports
    /// completion.
    fn reconcile(&mut self, now: Time, rules: &[Rule]) -> Result<Corrections, FilterError>;

    /// Continues a reconciliation for a few milliseconds. Between calls, changes may be applied.
    fn continue_reconciliation(&mut self, now: Time) -> Result<Progress, FilterError> {
        let _ = now;
        Ok(Progress::Done)
    }

    /// Returns true if no other program can change the filter.
    fn is_protected(&self) -> bool {
        true
    }

    /// Returns true if another program has changed the filter since the last call.
    fn has_foreign_change(&mut self) -> bool {
        false
    }
}

/// The progress of a reconciliation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Some required elements are still missing.
    AddingMissing,
    /// All required elements are present. The search for surplus elements continues; continue the reconciliation again
    /// in a second.
    SearchingSurplus,
    /// The filter contains exactly the required elements.
    Done,
}

/// The corrections that were necessary in a filter; all zero if it was correct.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Corrections {
    /// Number of elements that were added. A rule has at least one element per port and direction.
    pub missing: usize,
    /// Number of elements that were removed. An element whose lifetime or translation was wrong counts both as missing
    /// and as surplus.
    pub surplus: usize,
}
