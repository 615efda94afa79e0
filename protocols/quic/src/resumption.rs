//! Earlier connections, whose tickets clients use for 0-RTT. RFC 8446 section 2.3, RFC 9001 section 4.6.
//!
//! Both ends of an earlier connection are here, so it takes no time on the measured path.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hol_base::{Seed, Time};
use hol_transport::Command;
use hol_wire::{Address, Ecn, ipv4};
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::packet_form::EndpointOutput;
use crate::{Config, EncryptedPackets, Endpoint, MessageMapping, Tls};

/// Number of TLS session tickets that a server issues on an earlier connection.
pub(crate) const TICKET_COUNT: usize = 16;

/// Number of TLS session tickets that are created before the first connection. With this stock, few runs open
/// earlier connections while they measure.
const PREPARED_TICKETS: usize = 64;

/// The TLS session tickets of clients. Each ticket is used once.
#[derive(Default)]
pub(crate) struct Tickets(Mutex<Stock>);

#[derive(Default)]
struct Stock {
    unused: VecDeque<Tls13ClientSessionValue>,
    /// Number of clients that have been created but have not begun their handshake, which takes a ticket.
    waiting_clients: usize,
}

impl Tickets {
    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens earlier connections, and thus gets tickets, before the first client is created.
    pub(crate) fn prepare(&self, tls: &Tls, config: &Config) {
        self.open_connections_until(PREPARED_TICKETS, tls, config);
    }

    /// Ensures that a ticket is left for one more client. Clients that open at the same time are all created
    /// before the first handshake.
    pub(crate) fn ensure_one_more(&self, tls: &Tls, config: &Config) {
        let wanted = self.stock().waiting_clients + 1;
        self.open_connections_until(wanted, tls, config);
        self.stock().waiting_clients = wanted;
    }

    /// Opens earlier connections until there are `wanted` tickets. The clients of `tls` store the issued tickets
    /// here.
    fn open_connections_until(&self, wanted: usize, tls: &Tls, config: &Config) {
        let mut before = None;
        loop {
            let count = self.stock().unused.len();
            if count >= wanted || before.is_some_and(|before| count <= before) {
                return;
            }
            before = Some(count);
            open_connection(tls, Arc::new(Config { zero_rtt: false, ..config.clone() }));
        }
    }
}

/// Opens a connection between two endpoints, and passes their datagrams without delay until neither sends any
/// more.
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

/// Passes the datagrams of each endpoint to the other; returns whether there were any.
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
        self.stock().unused.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut stock = self.stock();
        stock.waiting_clients = stock.waiting_clients.saturating_sub(1);
        stock.unused.pop_front()
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}
