//! The floor: how long a datagram takes there and back before anything else is on the links.

use std::net::UdpSocket;
use std::time::Duration;

use super::Trouble;
use super::topology::{Topology, address};
use crate::job::Floor;
use crate::netem::Plan;

/// Datagrams that are tried on a link; the fastest counts, for some get lost and some are held back.
const TRIES: usize = 20;
/// Enough of them.
const ENOUGH: usize = 3;
/// Octets of a datagram, and with its headers.
const PAYLOAD: usize = 56;
const PACKET: u64 = 56 + 8 + 20;

/// The floor of each link.
pub(super) fn floors(topology: &Topology, plan: &Plan) -> Result<Vec<Floor>, Trouble> {
    let mut floors = Vec::new();
    for (link, number) in plan.links.iter().zip(1..) {
        let expected = link.round_trip(PACKET).as_nanos();
        topology.server.enter()?;
        let server = UdpSocket::bind((address(number, 2), 7))?;
        topology.client.enter()?;
        let client = UdpSocket::bind((address(number, 1), 0))?;
        client.connect((address(number, 2), 7))?;
        let patience = Duration::from_nanos(expected) * 2 + Duration::from_secs(5);
        client.set_read_timeout(Some(patience))?;
        server.set_read_timeout(Some(patience))?;
        let round_trips = (0..TRIES).filter_map(|number| round_trip(&client, &server, number as u8));
        let measured = round_trips.take(ENOUGH).min().unwrap_or(u64::MAX);
        floors.push(Floor { measured, expected });
    }
    Ok(floors)
}

/// One datagram there and back; `None` if it got lost.
fn round_trip(client: &UdpSocket, server: &UdpSocket, number: u8) -> Option<u64> {
    let start = Clock::now();
    client.send(&[number; PAYLOAD]).ok()?;
    let mut buffer = [0; PAYLOAD];
    let (length, peer) = server.recv_from(&mut buffer).ok()?;
    server.send_to(&buffer[..length], peer).ok()?;
    client.recv(&mut buffer).ok()?;
    (buffer[0] == number).then(|| start.elapsed().as_nanos() as u64)
}

#[expect(clippy::disallowed_types, reason = "in here the clock is the machine's virtual one")]
type Clock = std::time::Instant;
