//! ns scripts as networks: Emulab's testbed in a file.
//!
//! [`Script::read`] converts a script in the language of ns-2 and Emulab to a
//! [`NetworkSpec`](hol_network::NetworkSpec), [`write()`] a network to a script, and [`mapping()`] lists
//! nodes and links as in Emulab's mails.
//!
//! Supported traffic is FTP and CBR over the common agents, from a start to a stop, as [`Flow`]s; Emulab's
//! start commands and program agents become [`Program`]s. Other run-time commands are ignored and listed. All
//! commands that are not understood are reported together. A LAN is one link shared by its members, where
//! Emulab's switch has two for each of them; commands about a single member's are rejected.
//!
//! `tcl` is the language; `simulator` and `emulab` have its commands about networks.

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
