//! Experiments, and the time series of their runs.

mod experiments;
mod series;
mod trace_start;
