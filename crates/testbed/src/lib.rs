//! ns scripts as networks: Emulab's testbed in a file.
//!
//! [`Script::read`] makes a [`NetworkSpec`](hol_network::NetworkSpec) of a script in the language of ns-2 and Emulab,
//! [`write()`] a script of a network, and [`mapping()`] says as Emulab's mails did what became of each node and link.
//!
//! Traffic, agents and events are not read: they belong into the experiment file. A LAN is one line that its members
//! share, where Emulab's switch has two for each of them; commands about a single member's are refused.
//!
//! `tcl` is the language, `simulator` and `emulab` have its commands about networks.

mod draft;
mod emulab;
mod ignored;
mod mapping;
mod quantity;
mod script;
mod simulator;
mod tcl;
mod write;

pub use mapping::{Section, mapping};
pub use script::{Ignored, Script, ScriptError};
pub use write::write;
