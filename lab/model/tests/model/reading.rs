//! A program that polls its sockets reads one message, acts on it, and polls again.

use hol_base::{Seed, Time};
use hol_model::run;
use hol_network::{PacketInTransit, Tap, TapEvent, TapPoint};
use hol_scenario::Scenario;
use hol_wire::Transport;
use hol_wire::sctp::Chunk;

const LENGTH: u64 = 447;

/// The windows in the server's SACKs that are bundled with DATA.
#[derive(Default)]
struct Windows(Vec<u32>);

impl Tap for Windows {
    fn packet(&mut self, _: Time, point: TapPoint<'_>, transit: &PacketInTransit, event: TapEvent) {
        let Transport::Sctp(packet) = &transit.packet.transport else { return };
        if event == TapEvent::Sent
            && point.name.starts_with("server")
            && let [Chunk::Sack(sack), Chunk::Data(_), ..] = &packet.chunks[..]
        {
            self.0.push(sack.a_rwnd);
        }
    }
}

/// `net/sctp/socket.c` sctp_recvmsg: a read returns one message, and only that makes room
/// (`net/sctp/associola.c` sctp_assoc_rwnd_increase). The answer to the first message of a packet is bundled
/// with the SACK before the second is read.
#[test]
fn server_replies_to_a_message_before_it_reads_the_next() {
    let scenario = Scenario::with_single_flow(
        toml::from_str("delay = '50ms'\nrate = '100Mbit'").unwrap(),
        "sctp:wakeup=0s,receive_buffer=106496B".parse().unwrap(),
        toml::from_str(&format!("kind = 'echo'\nrate = '1000/s'\nsize = '{LENGTH}B'")).unwrap(),
        40,
    );
    let mut windows = Windows::default();
    run(&scenario, Seed(1), Some(&mut windows)).unwrap();
    let Windows(windows) = windows;
    let unread = |messages: u64| (106_496 - messages * LENGTH) as u32;
    assert!(windows.contains(&unread(1)), "{windows:?}");
    assert!(windows.iter().all(|window| (0..4).map(unread).any(|one| one == *window)), "{windows:?}");
}
