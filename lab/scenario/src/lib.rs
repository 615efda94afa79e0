//! One definition of a run: what every world is asked, what it answers, and the only rules of start, stall and end.
//!
//! A [`Scenario`] and a seed go in, records go to an [`Observer`] as messages are settled, and a [`Course`] comes out;
//! [`World`] is the contract of whoever does that. The driver of a world feeds each [`Flow`] with what happens, and that says
//! when it is over. [`conformance`] is a table of cases that every
//! world runs: it compares kinds and counts, never times.

mod as_written;
mod asking;
mod background;
pub mod conformance;
mod ends;
mod error;
mod facts;
mod flow;
mod flow_spec;
mod json_path;
mod lanes;
mod observer;
mod onward;
mod ports;
mod program;
mod quic;
mod reading;
mod run;
mod sample;
mod scenario;
mod stopped;
mod witness;
mod world;

pub use asking::Tied;
pub use background::{Background, BackgroundFlow};
pub use ends::ends;
pub use error::ScenarioError;
pub use facts::{Facts, FilterFacts, Floor, LineFacts, PeerFacts, ProgramFacts, RouterFacts, WaitFacts};
pub use flow::{Flow, Tally, Terms};
pub use flow_spec::{FlowPlace, FlowSpec};
pub use lanes::lanes;
pub use observer::Observer;
pub use onward::{Onward, OnwardFlow};
pub use ports::{CLIENT_PORTS, FIRST_CLIENT_PORT, flow_of, server_port};
pub use program::{Command, Content, Program, Ready, Root};
pub use quic::check_quic;
pub use reading::{Better, Find, Origin, Reading, Take};
pub use run::{BackgroundRun, Course, Run};
pub use sample::{Queue, Sample, Sampled, Sender, Side};
pub use scenario::Scenario;
pub use stopped::Stopped;
pub use witness::{Packet, Sighting, Witness};
pub use world::{Cost, Hops, RunError, World};
