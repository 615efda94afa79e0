//! ns scripts as networks.
//!
//! [`Script::read`] converts a script in the language of ns-2 and Emulab to a
//! [`NetworkSpec`](hol_network::NetworkSpec), [`write()`] a network to a script, and [`emulab_tables()`] lists
//! nodes and links as in Emulab's mails.
//!
//! A script is executed as Tcl and OTcl would, and commands at times of its run (`$ns at`) in the order of time: link
//! changes become events of the network; applications send as [`Flow`]s, FTP, CBR, on/off sources and Telnet over the
//! common agents, with the random numbers of ns; Emulab's start commands and program agents become [`Program`]s.
//! Commands that only draw, record or concern machines are ignored, and listed. All other unsupported commands are
//! reported together. A LAN is one link shared by its members, where Emulab's switch has two links for each member;
//! commands about a single member's link are rejected.
//!
//! A script that sources `tb_compat.tcl`, or has commands of Emulab, has Emulab's defaults; all other scripts have the
//! defaults of ns 2.35.
//!
//! `tcl` is the language. `simulator` holds the objects of a script, and `simulator_methods`, `links`,
//! `agent_commands`, `application` and `emulab` execute their commands, `schedule` in the order of time. `agents`,
//! `random_sources`, `queue`, `loss` and `flow` convert objects to hol's flows and links; `unsupported` explains why a script
//! is refused.

mod agent_commands;
mod agents;
mod application;
mod attributes;
mod defaults;
mod emulab;
mod emulab_tables;
mod flow;
mod ignored;
mod links;
mod loss;
mod network_builder;
mod new;
mod ns_defaults;
mod programs;
mod quantity;
mod queue;
mod random;
mod random_sources;
mod random_variables;
mod schedule;
mod script;
mod script_writer;
mod simulator;
mod simulator_methods;
mod sources;
mod tcl;
mod traffic;
mod unsupported;

pub use emulab_tables::{EmulabTable, emulab_tables};
pub use flow::{Flow, FlowLoad};
pub use programs::Program;
pub use script::{CheckNetwork, IgnoredCommand, ReadFile, Script, ScriptError};
pub use script_writer::{write, write_with_addresses};
