#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! [`NetworkSpec`] is the table of an experiment, [`Topology`] the validated network (modules `build` and
//! `check`), [`Network`] the running simulation. Each physical effect has a file: `transmitter` (rate),
//! `queue`, `red`, `codel`, `fq_codel`, `pie`, `propagation` (delay, jitter) and its `distribution`,
//! `loss` and its `timed_bursts`, `random_effect` (duplication, corruption, reordering), `policer`. `named_path` has the
//! paths of `paths/`, `trace` reads files of events, `trace_playback` plays them from the position of
//! `trace_start` on, `link` combines the effects, `channel` makes links take turns.

mod build;
mod capacity;
mod cells;
mod channel;
mod check;
mod codel;
mod delay_line;
mod discipline;
mod disruption;
mod distribution;
mod dualpi2;
mod error;
mod event;
mod event_queue;
mod event_rate;
mod fq_codel;
mod handover;
mod identifier;
mod ip;
mod link;
mod link_change;
mod loss;
mod named_path;
mod network;
mod observer;
mod opportunities;
mod pie;
mod policer;
mod propagation;
mod queue;
mod random_effect;
mod red;
mod routes;
mod spec;
mod tap;
mod timed_bursts;
mod topology;
mod trace;
mod trace_playback;
mod trace_start;
mod trace_table;
mod transit;
mod transmitter;

pub use {hol_base as base, hol_wire as wire};

pub use codel::CodelSpec;
pub use delay_line::changes_after_propagation;
pub use discipline::Discipline;
pub use disruption::Disruption;
pub use distribution::Distribution;
pub use dualpi2::DualPi2Spec;
pub use error::NetworkError;
pub use event::{EventSpec, LinkDirection};
pub use event_queue::EventQueue;
pub use event_rate::EventRate;
pub use fq_codel::FairSpec;
pub use handover::{HandoverChange, HandoverSpec};
pub use identifier::{InterfaceId, LinkId, NodeId};
pub use ip::Ip;
pub use link_change::LinkChange;
pub use loss::{ExplicitLoss, GilbertElliott, LossSpec, TimedBursts};
pub use named_path::NamedPath;
pub use network::{Arrival, Backlog, Network};
pub use pie::PieSpec;
pub use policer::{PoliceSpec, TokenBucket};
pub use red::RedSpec;
pub use spec::{LanSpec, LinkSpec, NetworkSpec, Overrides, PathSpec, Settings};
pub use tap::{Drops, Tap, TapEvent, TapPoint, node_of};
pub use topology::{
    AddressChange, Interface, LinkDirectionSettings, Medium, Route, RouteChange, ScheduledChange, Segment,
    Topology,
};
pub use trace::{
    TraceError, TraceSpec, events as trace_events, read as read_trace, read_repeating as read_repeating_trace,
};
pub use trace_playback::TracePlayback;
pub use trace_start::TraceStart;
pub use transit::PacketInTransit;
