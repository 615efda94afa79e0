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
mod footprint;
mod holds;
mod nftables;
mod null;
mod ports;
mod recording;
mod shape;

pub use config::{Config, ConfigError, Interfaces, Pool, Unmatched};
pub use error::{FilterError, Unsupported};
pub use footprint::{MOST_SHAPES, footprint};
pub use nftables::Nftables;
pub use null::NullFilter;
pub use recording::RecordingFilter;

/// Something that puts rules in force.
pub trait PacketFilter: Send {
    /// Makes all changes at once, or none. A rule's lifetime ends at [`Rule::expires`] on the clock of `now`, also if
    /// nobody says so again.
    fn apply(&mut self, now: Time, changes: &[Change]) -> Result<(), FilterError>;

    /// Makes exactly these rules hold, whatever held before, and says what that takes. If it takes long, some of what is
    /// missing is missing until [`go_on`](Self::go_on) says that nothing is.
    fn reconcile(&mut self, now: Time, rules: &[Rule]) -> Result<Mended, FilterError>;

    /// Goes on with a reconciliation for a few milliseconds. Changes may be applied in between.
    fn go_on(&mut self, now: Time) -> Result<Progress, FilterError> {
        let _ = now;
        Ok(Progress::Done)
    }

    /// True if nobody else can change what holds.
    fn is_guarded(&self) -> bool {
        true
    }

    /// True if somebody else is known to have changed it since this was asked last.
    fn is_touched(&mut self) -> bool {
        false
    }
}

/// How far a reconciliation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Some of what rules want is missing.
    GoesOn,
    /// All is there that rules want. Whether there is more is still looked for: go on in a second.
    Waits,
    /// Exactly what rules want is there.
    Done,
}

/// What a filter lacked, and had too much. One that is as it has to be has neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Elements that were added: a rule has one a direction and port.
    pub missing: usize,
    /// Elements that were removed. One that ended at the wrong time or translated wrongly counts as both.
    pub surplus: usize,
}
