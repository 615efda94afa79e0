//! A SIMCO agent for programs: sessions with a middlebox over TCP, TLS, SCTP or SCTP over UDP. RFC 4540.
//!
//! [`Session`] blocks, with a timeout. Requests may be pipelined: [`send`](Session::send) any number, and take
//! each answer when needed. Changes that other agents make to accessible rules arrive as [`RuleEvent`]s. The
//! protocol itself is [`hol_simco::Agent`]; this crate adds the sockets.
//!
//! ```no_run
//! use hol_agent::{FlowEnd, Server, Session, tuples};
//! use hol_simco::{Direction, Enable, Lifetime, PerParameters, PortParity, Reply, Request, Unauthenticated};
//!
//! let server: Server = "127.0.0.1:7626".parse()?;
//! let mut session = Session::open(&server, Box::new(Unauthenticated))?;
//!
//! const UDP: u8 = 17;
//! let (caller, callee): (FlowEnd, FlowEnd) = ("10.0.0.5:5004".parse()?, "198.51.100.7:6000".parse()?);
//! let (internal, external) = tuples(&caller, &callee, UDP);
//! let parameters = PerParameters { parity: PortParity::Any, direction: Direction::BiDirectional };
//! let enable = Enable { parameters, internal, external, lifetime: Lifetime(300) };
//!
//! let Reply::Per(rule) = session.ask(Request::Per { enable, gid: None })? else { unreachable!() };
//! println!("rule {} passes for {} s", rule.pid.0, rule.lifetime.0);
//!
//! // Pipelined: both requests are under way before the first answer.
//! let status = session.send(Request::Prs { pid: rule.pid })?;
//! let delete = session.send(Request::Plc { pid: rule.pid, lifetime: Lifetime(0) })?;
//! println!("{:?} {:?}", session.answer(status)?, session.answer(delete)?);
//! session.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certificates;
mod connection;
mod deadline;
mod error;
mod flow_end;
mod sctp_over_udp;
mod secrets;
mod server;
mod session;

pub use certificates::{
    CertificateError, Tls, crypto_provider, read_authorities, read_certificates, read_key,
};
pub use error::SessionError;
pub use flow_end::{FlowEnd, FlowEndError, tuples};
pub use secrets::{SecretFileError, nonces, read_secrets};
pub use server::{Server, ServerError, Transport};
pub use session::{Answer, RuleEvent, Session};
