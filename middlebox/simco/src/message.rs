//! Whole messages. RFC 4540 sections 4.2 and 5.

use bytes::Bytes;

use crate::attribute::{Attributes, LengthCounter, Sink};
use crate::header::{Header, basic_type};
use crate::{Lifetime, Pid, Refusal, Reply, Request, Tid, Version};

/// A SIMCO message: its transaction identifier and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Transaction identifier.
    pub tid: Tid,
    /// Content of the message.
    pub body: Body,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A request of an agent.
    Request(Request),
    /// A positive reply of a middlebox.
    Reply(Reply),
    /// A negative reply of a middlebox, except a version mismatch.
    Refusal(Refusal),
    /// A negative reply to SE: the middlebox supports only this version. No other negative reply has an attribute. RFC
    /// 4540 section 5.2.6.
    VersionMismatch(Version),
    /// An unsolicited message of a middlebox.
    Notification(Notification),
}

/// An unsolicited message of a middlebox. Notifications have TIDs of their own. RFC 4540 section 4.2.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// Badly formed message (BFM): the middlebox received a malformed message. RFC 4540 section 5.1.1.
    Bfm,
    /// Asynchronous session termination (AST): the middlebox ends the session. RFC 4540 section 5.2.7.
    Ast,
    /// Asynchronous policy rule event (ARE): a policy rule has changed. RFC 4540 section 5.3.19.
    Are {
        /// The identifier of the rule.
        pid: Pid,
        /// The remaining lifetime of the rule in seconds; zero if the rule has ended.
        lifetime: Lifetime,
    },
}

/// Why octets are not a SIMCO message. RFC 4540 section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The length of the message differs from that in its header, or is too short for a header.
    #[error("the length of the message differs from the length in its header")]
    Length,
    /// The basic type is not defined.
    #[error("unknown basic message type {0:#04x}")]
    BasicType(u8),
    /// The sub-type is not defined for this basic type.
    #[error("unknown sub-type {0:#04x}")]
    SubType(u8),
    /// The attribute of this type is not expected here, or its value is malformed.
    #[error("attribute {0:#06x} is missing or malformed")]
    Attribute(u16),
    /// An attribute is missing: one of several is required.
    #[error("a required attribute is missing")]
    MissingAttribute,
    /// There are more attributes than the message may have.
    #[error("the message has more attributes than its type allows")]
    SurplusAttribute,
}

/// Sub-type of the negative reply for a version mismatch.
const VERSION_MISMATCH: u8 = 0x22;
/// Sub-types of notifications: BFM, AST and ARE.
const BFM: u8 = 0x01;
const AST: u8 = 0x02;
const ARE: u8 = 0x03;

impl Message {
    /// Creates a message with a request.
    pub fn request(tid: Tid, request: Request) -> Self {
        Self { tid, body: Body::Request(request) }
    }

    /// Creates a message with a positive reply.
    pub fn reply(tid: Tid, reply: Reply) -> Self {
        Self { tid, body: Body::Reply(reply) }
    }

    /// Creates a message with a negative reply.
    pub fn refusal(tid: Tid, refusal: Refusal) -> Self {
        Self { tid, body: Body::Refusal(refusal) }
    }

    /// Creates a message with a notification.
    pub fn notification(tid: Tid, notification: Notification) -> Self {
        Self { tid, body: Body::Notification(notification) }
    }

    /// Parses octets that are exactly one message.
    pub fn parse(octets: &[u8]) -> Result<Self, ParseError> {
        let header = Header::parse(octets).ok_or(ParseError::Length)?;
        if octets.len() != header.message_length() {
            return Err(ParseError::Length);
        }
        let (sub_type, body) = (header.sub_type, &octets[Header::LENGTH..]);
        let body = match header.basic_type {
            basic_type::REQUEST => Body::Request(Request::parse(sub_type, body)?),
            basic_type::POSITIVE_REPLY => Body::Reply(Reply::parse(sub_type, body)?),
            basic_type::NEGATIVE_REPLY => parse_negative_reply(sub_type, body)?,
            basic_type::NOTIFICATION => Body::Notification(Notification::parse(sub_type, body)?),
            other => return Err(ParseError::BasicType(other)),
        };
        Ok(Self { tid: header.tid, body })
    }

    /// Capacity reserved for a message in octets; few messages are longer.
    const TYPICAL_LENGTH: usize = 64;

    /// Returns the length of the encoded message in octets.
    pub fn length(&self) -> usize {
        Header::LENGTH + self.body.length()
    }

    /// Encodes the message.
    ///
    /// # Panics If the body has more than 65,535 octets, the maximum of its length field.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(Self::TYPICAL_LENGTH);
        self.append_to(&mut out);
        out.into()
    }

    /// Encodes the message and appends it to `out`.
    ///
    /// # Panics If the body is too long for [`to_bytes`](Self::to_bytes).
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (basic_type, sub_type) = (self.body.basic_type(), self.body.sub_type());
        Header { basic_type, sub_type, body_length: 0, tid: self.tid }.emit(out);
        self.body.add_to(out);
        let body_length = out.len() - start - Header::LENGTH;
        let body_length = u16::try_from(body_length).expect("a body is at most 65535 octets");
        out[start + 2..start + 4].copy_from_slice(&body_length.to_be_bytes());
    }
}

fn parse_negative_reply(sub_type: u8, body: &[u8]) -> Result<Body, ParseError> {
    let mut body = Attributes::new(body);
    let negative = if sub_type == VERSION_MISMATCH {
        Body::VersionMismatch(body.next()?)
    } else {
        Body::Refusal(Refusal::from_code(sub_type).ok_or(ParseError::SubType(sub_type))?)
    };
    body.finish()?;
    Ok(negative)
}

impl Body {
    fn basic_type(&self) -> u8 {
        match self {
            Self::Request(_) => basic_type::REQUEST,
            Self::Reply(_) => basic_type::POSITIVE_REPLY,
            Self::Refusal(_) | Self::VersionMismatch(_) => basic_type::NEGATIVE_REPLY,
            Self::Notification(_) => basic_type::NOTIFICATION,
        }
    }

    fn sub_type(&self) -> u8 {
        match self {
            Self::Request(request) => request.sub_type(),
            Self::Reply(reply) => reply.sub_type(),
            Self::Refusal(refusal) => refusal.code(),
            Self::VersionMismatch(_) => VERSION_MISMATCH,
            Self::Notification(notification) => notification.sub_type(),
        }
    }

    fn length(&self) -> usize {
        let mut length = LengthCounter::default();
        self.add_to(&mut length);
        length.0
    }

    fn add_to(&self, body: &mut impl Sink) {
        match self {
            Self::Request(request) => request.add_to(body),
            Self::Reply(reply) => reply.add_to(body),
            Self::Refusal(_) => {}
            Self::VersionMismatch(version) => body.add(version),
            Self::Notification(notification) => notification.add_to(body),
        }
    }
}

impl Notification {
    fn parse(sub_type: u8, body: &[u8]) -> Result<Self, ParseError> {
        let mut body = Attributes::new(body);
        let notification = match sub_type {
            BFM => Self::Bfm,
            AST => Self::Ast,
            ARE => Self::Are { pid: body.next()?, lifetime: body.next()? },
            other => return Err(ParseError::SubType(other)),
        };
        body.finish()?;
        Ok(notification)
    }

    fn sub_type(&self) -> u8 {
        match self {
            Self::Bfm => BFM,
            Self::Ast => AST,
            Self::Are { .. } => ARE,
        }
    }

    fn add_to(&self, body: &mut impl Sink) {
        if let Self::Are { pid, lifetime } = self {
            body.add(pid);
            body.add(lifetime);
        }
    }
}
