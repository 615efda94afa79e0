//! The definition of a run for every world: its input, its result, and the rules of its start, stall and end.
//!
//! A world takes a [`Scenario`] and a seed, passes a record of each settled message to an [`Observer`], and returns a
//! [`RunSummary`]; [`World`] is the trait that all worlds implement. The driver of a world reports events to each
//! [`Flow`], which decides when it has ended. [`conformance`] is a table of cases that every world runs: it compares
//! kinds and counts, never times.

mod background;
pub mod conformance;
mod connection_addresses;
mod error;
mod flow;
mod flow_spec;
mod json_path;
mod metric;
mod observer;
mod onward;
mod onward_links;
mod packet_observer;
mod ports;
mod program;
mod quic;
mod run;
mod run_end;
mod sample;
mod scenario;
mod stream_layout;
mod transport_text;
mod world;
mod world_report;

pub use background::{Background, BackgroundFlow};
pub use connection_addresses::connection_addresses;
pub use error::ScenarioError;
pub use flow::{Flow, FlowLimits, FlowProgress};
pub use flow_spec::{FlowPosition, FlowSpec};
pub use metric::{Better, MetricAggregation, MetricPattern, MetricReader, MetricSource};
pub use observer::Observer;
pub use onward::{OnwardFlow, OnwardRequests};
pub use onward_links::OnwardLinks;
pub use packet_observer::{Packet, PacketEvent, PacketObserver};
pub use ports::{CLIENT_PORTS, FIRST_CLIENT_PORT, flow_of, server_port};
pub use program::{Command, Content, Program, Ready, Root};
pub use quic::check_quic;
pub use run::{BackgroundRun, Run, RunSummary};
pub use run_end::RunEnd;
pub use sample::{QueueSample, Sample, SampleValue, SenderSample, Side};
pub use scenario::Scenario;
pub use stream_layout::stream_layout;
pub use world::{Cost, HopObserver, RunError, World};
pub use world_report::{
    BaselineDelay, FilterReport, LinkDirectionCounters, PeerHostReport, ProgramResult, ReadDelays,
    RouterReport, WorldReport,
};
