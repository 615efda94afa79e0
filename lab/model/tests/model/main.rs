//! Runs in the model world.

mod closed_forms;
mod conformance;
mod ecn;
mod files;
mod flows;
mod handover;
mod handover_route;
mod ipv6;
mod media;
mod onward;
mod page;
mod reading;
mod runs;
mod series;
mod service;
