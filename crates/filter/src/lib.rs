//! Packet filters: what puts the policy rules of a SIMCO middlebox in force.
//!
//! A [`PacketFilter`] makes the [`Change`]s of a batch, all or none. [`Nftables`] is Linux' own filter, [`NullFilter`]
//! lets measurements leave it out, [`RecordingFilter`] is for tests. `docs/simco-filter.md` shows the rules that come out.

use hol_base::Time;
use hol_simco::{Change, Rule};

mod config;
mod element;
mod error;
mod flow;
mod holds;
mod nftables;
mod null;
mod recording;

pub use config::{Config, ConfigError, Interfaces, Pool, Unmatched};
pub use error::{FilterError, Unsupported};
pub use nftables::Nftables;
pub use null::NullFilter;
pub use recording::RecordingFilter;

/// Something that puts rules in force.
pub trait PacketFilter: Send {
    /// Makes all changes at once, or none. A rule's lifetime ends at [`Rule::expires`] on the clock of `now`, also if
    /// nobody says so again.
    fn apply(&mut self, now: Time, changes: &[Change]) -> Result<(), FilterError>;

    /// Makes exactly these rules hold, whatever held before, and says what that took.
    fn reconcile(&mut self, now: Time, rules: &[Rule]) -> Result<Mended, FilterError>;

    /// True if nobody else can change what holds.
    fn is_guarded(&self) -> bool {
        true
    }

    /// True if somebody else is known to have changed it since this was asked last.
    fn is_touched(&mut self) -> bool {
        false
    }
}

/// What a filter lacked, and had too much. One that is as it has to be has neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Elements that were added: a rule has one a direction and port.
    pub missing: usize,
    /// Elements that were removed. One that ended at the wrong time or translated wrongly counts as both.
    pub surplus: usize,
}
