//! `simcod serve`: a SIMCO middlebox on the network. RFC 4540.
//!
//! ```text
//! sockets ──octets──▶ Middlebox ──▶ Batch ──changes──▶ packet filter, then journal
//!    ▲                                                            │ all made
//!    └───────────────────────── messages ◀────────────────────────┘
//! ```
//!
//! One thread runs this loop. [`Daemon`] is the loop; [`hol_simco::Middlebox`] knows the protocol.

mod audit;
mod clock;
mod connection;
mod connections;
mod daemon;
mod error;
mod event_source;
mod limits;
mod listeners;
mod log;
mod message_transport;
mod metrics;
mod metrics_endpoint;
mod outbox;
mod port_mapping;
mod privileges;
mod read_queue;
mod rule_store;
mod rules;
mod sctp;
mod sctp_over_udp;
mod sctp_port;
mod settings;
mod setup;
mod signals;
mod standby;
mod systemd;
mod tcp;
mod tls;
mod unauthenticated_connections;

pub use daemon::Daemon;
pub use error::DaemonError;
pub use limits::Limits;
pub use listeners::{ListenAddress, Transport, socket_address};
pub use log::{Format, Level, Log};
pub use privileges::drop_privileges;
pub use rule_store::RuleStoreError;
pub use rules::recorded_rules;
pub use settings::{
    FilterKind, LimitSettings, NatSettings, NftablesSettings, PcpSettings, ProtectedSettings, Settings,
    StandbySettings, TlsSettings,
};
pub use setup::SetupError;
pub use signals::Signals;
pub use standby::follow;
