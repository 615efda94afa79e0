//! SIMCO 3.0, RFC 4540: an agent asks a middlebox to let flows pass.
//!
//! [`Message::parse`] and [`Message::to_bytes`] are the codec. [`Middlebox`] serves all sessions of a
//! firewall or NAT, [`Agent`] is the other side of one session. Bytes, time and randomness are arguments.
//!
//! Names are the RFC's: SE, SA and ST control the session; PRR, PER, PEA, PDR, PLC, PRS and PRL the policy
//! rules. Where the RFC contradicts itself, `docs/simco.md` gives our choice.
//!
//! ```
//! use hol_base::Time;
//! use hol_simco::{Batch, Framing, Lifetime, Message, Middlebox, Request, Tid, ConnectionInfo, Version};
//!
//! let mut middlebox = Middlebox::firewall(Lifetime(3600));
//! let session = middlebox.connect(Time::ZERO, ConnectionInfo::plain(Framing::Stream));
//! let establish = Request::Se { version: Version::SIMCO_3_0, challenge: None };
//! let octets = Message::request(Tid(1), establish).to_bytes();
//!
//! let mut batch = Batch::default();
//! middlebox.receive(Time::ZERO, session, octets, &mut batch);
//! assert!(batch.changes().is_empty(), "SE changes no rule");
//! assert_eq!(batch.release().count(), 1, "the SE reply");
//! ```

mod agent;
mod attribute;
mod authentication;
mod batch;
mod capabilities;
mod codes;
mod config;
mod footprint;
mod header;
mod message;
mod middlebox;
mod nat;
mod overlap_index;
mod parameters;
mod policy;
mod prefix;
mod quota;
mod recorded_rule;
mod refusal;
mod reply;
mod request;
mod resource_accounts;
mod rule;
mod rules;
mod secret;
mod tuple;
mod work;

pub use agent::{Agent, AgentError, AgentEvent};
pub use attribute::{Challenge, Gid, Lifetime, Owner, Pid, Token, Version};
pub use authentication::{Authentication, ChallengePair, Credentials, Unauthenticated};
pub use batch::{AnsweredRequest, Batch, Change, OperatorEvent, Output, SessionId};
pub use capabilities::Capabilities;
pub use config::{Config, ConfigError};
pub use footprint::{Footprint, FootprintFn, ShapeId};
pub use header::{Header, PAYLOAD_PROTOCOL, PORT, Tid, length_of};
pub use message::{Body, Message, Notification, ParseError};
pub use middlebox::{ConnectionInfo, Framing, Middlebox, RestoreError};
pub use parameters::{
    Direction, IpChoice, NatMode, PerParameters, PortParity, PrrParameters, ReservedParity,
};
pub use policy::{AgentId, Policy, PolicyError, Right};
pub use prefix::{Prefix, PrefixError};
pub use quota::{ExhaustedResource, Quota};
pub use recorded_rule::RecordedRule;
pub use refusal::Refusal;
pub use reply::{DisableRuleStatus, EnableRuleStatus, GrantedRule, Reply};
pub use request::{Enable, PortMapping, Request};
pub use resource_accounts::Usage;
pub use rule::{Action, Binding, Rule};
pub use secret::{Nonces, Secret, SecretError, SharedSecret, SharedSecrets};
pub use tuple::{AddressTuple, Addresses, IpVersion, Location};
