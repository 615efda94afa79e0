//! Experiment files, sweeps, runs, and the result directory.
//!
//! A [`Source`] is the text of an experiment with the overrides of the command line; it is resolved to the [`Point`]s of an
//! [`Experiment`]. A [`Plan`] lists the runs of one or several experiments, [`execute`] performs them on all cores, and a [`Store`]
//! saves each as soon as it is completed. A [`Shard`] is the part of a plan for one of several machines; [`merge`] joins the parts.
//! [`Results`] are the contents of a result directory.

mod archive;
mod axes;
mod background;
mod error;
mod estimate;
mod experiment;
mod failed;
pub mod fidelity;
mod figure;
mod finished;
mod flags;
mod flows;
mod following;
mod job;
mod manifest;
mod merge;
pub mod metric;
mod named;
mod onward;
mod plan;
mod point;
mod pool;
mod programs;
mod records;
mod repetitions;
mod results;
mod rows;
mod run;
mod run_result;
mod schema;
mod script;
mod series;
mod settled;
mod shard;
mod source;
mod stalls;
mod stopwatch;
mod store;
mod study;
mod sweep;
pub mod table;
mod told;
mod topology;
mod traces;
mod transport_options;
mod validate;
mod verify;
mod worlds;

pub use archive::Archive;
pub use background::Background;
pub use error::{InputError, LabError};
pub use estimate::Estimate;
pub use experiment::{Experiment, Keep};
pub use failed::FailedRun;
pub use figure::FigureWish;
pub use finished::Finished;
pub use flags::FLAGS;
pub use job::Job;
pub use manifest::{FORMAT, Host, Manifest};
pub use merge::{Merged, merge};
pub use metric::Metric;
pub use onward::Onward;
pub use plan::Plan;
pub use point::{Point, PointId, RunKey};
pub use repetitions::Repetitions;
pub use results::{PointResult, Results};
pub use run_result::{Counts, RunResult, Share};
pub use schema::{Key, Section, reference, schema};
pub use script::MARK;
pub use series::{Row, SHORTEST_INTERVAL, Series, Subject};
pub use shard::Shard;
pub use source::Source;
pub use stopwatch::Stopwatch;
pub use store::Store;
pub use study::Study;
pub use sweep::{Ended, Progress, execute};
pub use told::Told;
pub use validate::BothWorlds;
pub use verify::{Difference, repeatable, verify};
pub use worlds::WorldName;
