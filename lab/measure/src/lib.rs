//! What was measured and what may be said about it: records, distributions, intervals, tests.
//!
//! Means over repetitions are in the unit of the samples that the caller gives; names that end in
//! `_ms` are milliseconds.

mod batch;
mod bootstrap;
mod border;
mod bounds;
mod bucket;
mod buckets;
mod cause;
mod compare;
mod crossover;
mod distance;
mod distribution;
mod fisher;
mod halves;
mod interval;
pub mod nanoseconds;
mod outage;
mod packed;
mod playback;
mod precision;
mod quantile;
mod rank_sum;
mod record;
mod recorder;
mod signed_ranks;
mod stalls;
mod summary;
mod timeline;
mod transfer;
mod trend;
mod variance;
pub mod waterfall;

pub use batch::BatchMeans;
pub use border::{Border, Probe, Search, Side, borders};
pub use bounds::{Bounds, quantile};
pub use cause::Cause;
pub use compare::{
    Comparison, Verdict, benjamini_hochberg, compare_paired, compare_ratios, compare_unpaired,
    compare_with_unseen, holm,
};
pub use crossover::Crossover;
pub use distribution::Distribution;
pub use fisher::fisher_exact;
pub use halves::{Halves, Total, UNSTEADY, is_steady};
pub use interval::{CONFIDENCE, Interval, student_t};
pub use outage::{Course, Outage, OutagesSoFar};
pub use playback::Playback;
pub use precision::Precision;
pub use quantile::{CcdfPoint, QuantileInterval};
pub use rank_sum::RankSum;
pub use record::{Leg, Outcome, Record, RecordKind, Split};
pub use recorder::Recorder;
pub use signed_ranks::SignedRanks;
pub use stalls::{RARE, Stalls, Unseen};
pub use summary::{SplitMean, SplitTotal, Summarizer, Summary, summarize};
pub use timeline::{Delivered, Timeline, TimelineSoFar};
pub use transfer::{Meanwhile, Transfer, TransferSoFar, jain};
pub use trend::{Direction, Trend, isotonic_fit};
pub use variance::{Block, Part, Variance};
pub use waterfall::{Waterfall, WaterfallSoFar};
