//! Two TCP endpoints over a link that delays each packet by 10 ms and loses every tenth. Time is virtual: it jumps to the next event.

use std::collections::VecDeque;

use hol_tcp::base::{Duration, Seed, Time};
use hol_tcp::transport::{Command, Endpoint as _, Event, Input, Message, Output, drain};
use hol_tcp::wire::ipv4;
use hol_tcp::{Config, Endpoint};

const DELAY: Duration = Duration::from_millis(10);
const LENGTH: usize = 100_000;

fn main() {
    let (client, server) = ((ipv4(10, 0, 0, 1), 40_000), (ipv4(10, 0, 0, 2), 80));
    let mut ends = [
        Endpoint::connect(Config::linux_6_12(), client, server, Seed(1).rng()),
        Endpoint::listen(Config::linux_6_12(), server, Seed(2).rng()),
    ];
    let (mut link, mut loss) = (VecDeque::new(), Seed(3).rng());
    let (mut now, mut waits, mut received) = (Time::ZERO, [None; 2], 0);
    ends[0].handle(now, Input::Command(Command::Connect));
    while received < LENGTH {
        for at in 0..2 {
            waits[at] = drain(&mut ends[at], now, |end, output| match output {
                Output::Transmit(packet) if !loss.chance(0.1) => {
                    link.push_back((now + DELAY, 1 - at, packet));
                }
                Output::Event(Event::Connected) if at == 0 => {
                    end.handle(now, Input::Command(Command::Send(Message::new(vec![7; LENGTH]))));
                }
                Output::Event(Event::Received(data)) => received += data.payload.len(),
                Output::Event(Event::Failed { reason }) => panic!("{reason}"),
                _ => {}
            });
        }
        let arrival = link.front().map(|(time, ..)| *time);
        now = Time::earliest([arrival, waits[0], waits[1]]).unwrap_or(now);
        while link.front().is_some_and(|(time, ..)| *time <= now) {
            let (_, to, packet) = link.pop_front().expect("there is one");
            ends[to].handle(now, Input::Packet(packet));
        }
    }
    println!("{received} octets took {} ms; {:?}", now.as_millis(), ends[0].statistics());
}
