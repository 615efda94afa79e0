//! ns scripts as networks: Emulab's testbed in a file.
//!
//! [`Script::read`] makes a [`NetworkSpec`](hol_network::NetworkSpec) of a script in the language of ns-2 and Emulab,
//! [`write()`] a script of a network, and [`mapping()`] says as Emulab's mails did what became of each node and link.
//!
//! Of traffic it knows FTP and CBR over the common agents, from a start to a stop, as [`Flow`]s, and what Emulab's start commands
//! and program agents start, as [`Program`]s; whatever else a script does while it runs is not done here, and what is left out is listed. All that is not
//! understood is told at once. A LAN is one line that its members
//! share, where Emulab's switch has two for each of them; commands about a single member's are refused.
//!
//! `tcl` is the language, `simulator` and `emulab` have its commands about networks.

mod draft;
mod emulab;
mod ignored;
mod mapping;
mod programs;
mod quantity;
mod script;
mod simulator;
mod tcl;
mod traffic;
mod write;

pub use mapping::{Section, mapping};
pub use programs::Program;
pub use script::{Ignored, Script, ScriptError};
pub use traffic::{Flow, FlowLoad};
pub use write::{write, write_with_addresses};
