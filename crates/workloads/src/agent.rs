//! The SIMCO agent's requests: one session per connection or association, then policy enable rules. RFC 4540.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use hol_simco::{
    AddressTuple, Body, Direction, Enable, Lifetime, Location, Message, PerParameters, PortParity, Reply,
    Request, Tid, Version,
};
use hol_transport::FramingError;

/// Asks for a rule a message, as a call server would for the media of its calls.
#[derive(Debug)]
pub(crate) struct Agent {
    sessions: u16,
}

/// What a reply answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The session is established.
    Session,
    /// The rule with this number is enabled.
    Rule(u32),
}

impl Agent {
    /// IP protocol number of the media.
    const UDP: u8 = 17;
    /// Long enough for any delay, short enough to keep the middlebox's table small.
    const LIFETIME: Lifetime = Lifetime(10);

    pub(crate) fn new(sessions: u16) -> Self {
        Self { sessions }
    }

    /// SE for one of the sessions; their TIDs come first. RFC 4540 section 5.2.1.
    pub(crate) fn open(session: u16) -> (Tid, Bytes) {
        let tid = Tid(session.into());
        (tid, Message::request(tid, Request::Se { version: Version::SIMCO_3_0, challenge: None }).to_bytes())
    }

    /// PER, 56 octets. RFC 4540 section 5.3.3.
    pub(crate) fn request(&self, number: u32) -> (Tid, Bytes) {
        let tid = Tid(number.wrapping_add(self.sessions.into()));
        let [.., high, low] = number.to_be_bytes();
        let host = |net: u8| SocketAddr::from((Ipv4Addr::new(10, net, high, low), 5004));
        let enable = Enable {
            parameters: PerParameters { parity: PortParity::Any, direction: Direction::BiDirectional },
            internal: AddressTuple::of_host(Location::Internal, Self::UDP, host(200)),
            external: AddressTuple::of_host(Location::External, Self::UDP, host(201)),
            lifetime: Self::LIFETIME,
        };
        (tid, Message::request(tid, Request::Per { enable, gid: None }).to_bytes())
    }

    /// Reads a reply of the middlebox; it must be the positive one.
    pub(crate) fn reply(&self, octets: &[u8]) -> Result<Answered, &'static str> {
        let Message { tid, body } = Message::parse(octets).map_err(|_| "not a SIMCO message")?;
        match body {
            Body::Reply(Reply::Se { .. }) => Ok(Answered::Session),
            Body::Reply(Reply::Per(_)) => Ok(Answered::Rule(tid.0.wrapping_sub(self.sessions.into()))),
            _ => Err("the middlebox refused"),
        }
    }

    /// The number of the message that a request came from; `None` for session control.
    pub(crate) fn number(&self, octets: &[u8]) -> Option<u32> {
        let tid = hol_simco::Header::parse(octets)?.tid;
        tid.0.checked_sub(self.sessions.into())
    }
}

/// The length of the message that starts with `octets`. RFC 4540 section 4.2.
pub(crate) fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    Ok(hol_simco::length_of(octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Time;
    use hol_simco::{Batch, Framing, Middlebox, Output, Underlay};

    /// RFC 4540 sections 5.3.3 and 5.3.10: sizes with IPv4 tuples.
    #[test]
    fn a_request_takes_56_octets_and_its_reply_64() {
        let agent = Agent::new(1);
        let mut middlebox = Middlebox::firewall(Lifetime(3600));
        let session = middlebox.connect(Time::ZERO, Underlay::plain(Framing::Messages));
        let mut answer = |request| {
            let mut batch = Batch::default();
            middlebox.receive(Time::ZERO, session, request, &mut batch);
            let Some(Output::Send(_, reply)) = batch.release().next() else { panic!("no reply") };
            reply.to_bytes()
        };
        assert_eq!(agent.reply(&answer(Agent::open(0).1)), Ok(Answered::Session));
        let (tid, request) = agent.request(41);
        assert_eq!((tid, request.len(), agent.number(&request)), (Tid(42), 56, Some(41)));
        let reply = answer(request);
        assert_eq!((reply.len(), agent.reply(&reply)), (64, Ok(Answered::Rule(41))));
    }
}
