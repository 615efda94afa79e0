//! Earlier connections, whose tickets clients use for 0-RTT. RFC 8446 section 2.3, RFC 9001 section 4.6.
//!
//! Both ends of an earlier connection are here, so it takes no time on the measured path.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hol_base::{Seed, Time};
use hol_transport::Command;
use hol_wire::{Address, Ecn, ipv4};
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::packet_form::EndpointOutput;
use crate::{Config, EncryptedPackets, Endpoint, MessageMapping, Tls};

/// Number of tickets that a server issues on an earlier connection.
pub(crate) const TICKET_COUNT: usize = 16;

/// The unused tickets of clients; each is used once.
#[derive(Default)]
pub(crate) struct Tickets(Mutex<VecDeque<Tls13ClientSessionValue>>);

impl Tickets {
    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Opens an earlier connection if no ticket is left; `tls` issues tickets and stores them here.
    pub(crate) fn ensure_one(&self, tls: &Tls, config: &Config) {
        if self.is_empty() {
            open_connection(tls, Arc::new(Config { zero_rtt: false, ..config.clone() }));
        }
    }
}

/// Opens a connection between two ends that exchange their datagrams at once, until neither has any more.
fn open_connection(tls: &Tls, config: Arc<Config>) {
    const ENDS: [(Address, u16); 2] = [(ipv4(10, 0, 0, 1), 40_000), (ipv4(10, 0, 0, 2), 4433)];
    let rng = |name: &str| Seed(0).derive(name).rng();
    let mapping = MessageMapping::Streams;
    let mut ends = [
        Endpoint::client(Arc::clone(&config), mapping, tls, ENDS[1], rng("client")),
        Endpoint::server(config, mapping, tls, rng("server")),
    ];
    ends[0].handle_command(Time::ZERO, Command::Connect);
    while pass_datagrams(&mut ends, ENDS) {}
}

/// Passes the datagrams of each end to the other one; returns whether there were any.
fn pass_datagrams(ends: &mut [Endpoint<EncryptedPackets>; 2], addresses: [(Address, u16); 2]) -> bool {
    let mut has_any = false;
    for from in 0..2 {
        loop {
            match ends[from].poll(Time::ZERO) {
                EndpointOutput::Transmit(datagram) => {
                    has_any = true;
                    ends[1 - from].receive_datagram(
                        Time::ZERO,
                        addresses[from],
                        &datagram.octets,
                        Ecn::NotCapable,
                    );
                }
                EndpointOutput::Event(_) => {}
                EndpointOutput::Wait(_) => break,
            }
        }
    }
    has_any
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}
