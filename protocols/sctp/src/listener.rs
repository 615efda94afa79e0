//! A port that accepts associations, and stores nothing about a peer before a valid COOKIE ECHO. RFC 9260 section 5.1.

use std::sync::Arc;

use hol_base::{Rng, Time};
use hol_transport::{Endpoint as _, Input};
use hol_wire::{Address, Packet};

use crate::{Config, Endpoint};

/// A listening port with any number of associations.
///
/// Pass it only packets that belong to no association; find the association of other packets by addresses, ports and
/// verification tag. The state of a handshake is in the cookie, so that a flood of INITs needs no memory: RFC 9260
/// section 5.1.3.
///
/// ```
/// use hol_sctp::base::{Seed, Time};
/// use hol_sctp::transport::{Command, Endpoint as _, Input, Output};
/// use hol_sctp::{Config, Endpoint, Listener, wire::ipv4};
///
/// let (client, server) = (ipv4(10, 0, 0, 1), ipv4(10, 0, 0, 2));
/// let mut active =
///     Endpoint::connect(Config::rfc9260(), vec![client], 5000, vec![server], 5001, Seed(1).rng());
/// let mut listener = Listener::new(Config::rfc9260(), vec![server], 5001, Seed(2).rng());
/// active.handle(Time::ZERO, Input::Command(Command::Connect));
/// let Output::Transmit(init) = active.poll(Time::ZERO) else { panic!("no INIT") };
/// assert!(listener.handle(Time::ZERO, init).is_none());
/// let init_ack = listener.poll_transmit().expect("an answer");
/// active.handle(Time::ZERO, Input::Packet(init_ack));
/// let Output::Transmit(cookie_echo) = active.poll(Time::ZERO) else { panic!("no COOKIE ECHO") };
/// let accepted = listener.handle(Time::ZERO, cookie_echo).expect("an association");
/// assert_eq!(accepted.state_name(), "ESTABLISHED");
/// ```
#[derive(Debug)]
pub struct Listener {
    /// The endpoint for the next association, which signs and checks the cookies.
    next: Endpoint,
}

impl Listener {
    /// Creates a listening port. Its cookies are as unpredictable as `rng`.
    ///
    /// # Panics
    /// If `local` is empty.
    pub fn new(config: impl Into<Arc<Config>>, local: Vec<Address>, port: u16, rng: Rng) -> Self {
        Self { next: Endpoint::listen(config, local, port, rng) }
    }

    /// Handles a packet that belongs to no association. Returns the association that a valid COOKIE ECHO begins.
    pub fn handle(&mut self, now: Time, packet: Packet) -> Option<Endpoint> {
        self.next.handle(now, Input::Packet(packet));
        let following = self.next.next_listener()?;
        Some(std::mem::replace(&mut self.next, following))
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.next.packets.pop_front()
    }

    /// Returns whether the listener stores anything about a peer or a handshake.
    #[cfg(test)]
    pub(crate) fn has_state(&self) -> bool {
        let Endpoint { paths, control, packets, reader, peer_tag, .. } = &self.next;
        let is_empty = paths.list.is_empty() && control.is_empty() && packets.is_empty() && reader.is_empty();
        !is_empty || *peer_tag != 0 || self.next.deadline().is_some()
    }
}
