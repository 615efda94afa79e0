//! Experiment files, sweeps, runs, and the result directory
