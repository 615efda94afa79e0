//! Transfers bulk data over the crate dcsctp, a port of WebRTC's SCTP. Version 0.1.16 formats each packet as text for
//! its log even if the log is off; this takes most of its processor time.

use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketState, SocketTime, StreamId,
};
use hol_base::Time;

use crate::Bulk;
use crate::wire::Wire;

pub fn transfer(bulk: Bulk) {
    let options = Options {
        mtu: Bulk::MTU,
        max_message_size: Bulk::BUFFER,
        max_receiver_window_buffer_size: Bulk::BUFFER,
        ..Options::default()
    };
    let mut ends = [(1, 2), (2, 1)].map(|(local_port, remote_port)| {
        dcsctp::new_socket("", &Options { local_port, remote_port, ..options.clone() })
    });
    let mut wire = Wire::default();
    let (mut sent, mut received) = (0, 0);
    ends[0].connect();
    while received < bulk.messages {
        while sent < bulk.messages && can_send(&*ends[0], bulk.octets) {
            let message = Message::new(StreamId(0), PpId(0), vec![7; bulk.octets]);
            ends[0].send(message, &SendOptions::default()).unwrap();
            sent += 1;
        }
        for (number, end) in ends.iter_mut().enumerate() {
            while let Some(event) = end.poll_event() {
                if let SocketEvent::SendPacket(octets) = event {
                    wire.send(1 - number, octets);
                }
            }
            received += std::iter::from_fn(|| end.get_next_message()).count() as u64;
        }
        let due = ends.iter().map(|end| at(end.poll_timeout())).min();
        let come = wire.advance(due.map(|due| due.max(wire.now + hol_base::Duration::from_nanos(1))));
        let now = SocketTime::zero() + std::time::Duration::from_nanos(wire.now.as_nanos());
        ends.iter_mut().for_each(|end| end.advance_time(now));
        for (to, octets) in come {
            ends[to].handle_input(&octets);
        }
    }
}

fn can_send(end: &dyn DcSctpSocket, octets: usize) -> bool {
    end.state() == SocketState::Connected && end.buffered_amount(StreamId(0)) + octets <= Bulk::BUFFER
}

fn at(time: SocketTime) -> Time {
    if time == SocketTime::infinite_future() {
        return Time::MAX;
    }
    Time::from_nanos((time - SocketTime::zero()).as_nanos() as u64)
}
