//! Experiments, and the time series of their runs.

mod experiments;
mod series;
mod size_file;
mod trace_start;
