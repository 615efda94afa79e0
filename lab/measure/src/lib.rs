#![doc = include_str!("../README.md")]
//!
//! ## Units
//!
//! Means over repetitions are in the unit of the samples that the caller gives; names that end in
//! `_ms` are milliseconds.

mod batch;
mod bootstrap;
mod bounds;
mod bucket;
mod buckets;
mod compare;
mod crossover;
mod crossover_search;
mod delay_component;
mod distance;
mod distribution;
mod fisher;
mod halves;
mod interval;
pub mod nanoseconds;
mod outage;
mod packed_distribution;
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

pub use hol_base as base;

pub use batch::BatchMeans;
pub use bounds::{ConfidenceInterval, quantile};
pub use compare::{
    Comparison, Verdict, adjust_by_holm, benjamini_hochberg, compare_paired, compare_ratios,
    compare_unpaired, compare_with_allowances,
};
pub use crossover::Crossover;
pub use crossover_search::{Bracket, CrossoverSearch, Probe, Winner, brackets};
pub use delay_component::DelayComponent;
pub use distribution::Distribution;
pub use fisher::fisher_exact;
pub use halves::{LatencySum, RunHalves, UNSTEADY_SIGNIFICANCE, is_steady};
pub use interval::{CONFIDENCE, Interval, student_t};
pub use outage::{Outage, OutageCurve, OutagesBuilder};
pub use playback::Playback;
pub use precision::Precision;
pub use quantile::{CcdfPoint, QuantileInterval};
pub use rank_sum::RankSum;
pub use record::{DelayBreakdown, Outcome, Record, RecordKind, TransferTimes};
pub use recorder::Recorder;
pub use signed_ranks::SignedRanks;
pub use stalls::{Allowance, MIN_TIMEOUTS, TimeoutCounts};
pub use summary::{MeanDelayBreakdown, Summarizer, Summary, TotalDelayBreakdown, summarize};
pub use timeline::{Timeline, TimelineBuilder, TimelinePart};
pub use transfer::{BackgroundTransfer, Transfer, TransferBuilder, jain_index};
pub use trend::{Direction, Trend, isotonic_fit};
pub use variance::{Block, VarianceAnalysis, VarianceComponent};
pub use waterfall::{Waterfall, WaterfallBuilder};
