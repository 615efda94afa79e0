//! Shows how three stacks repair one lost segment: each packet of the same transfer, as `tcpdump` would
//! print it.

use std::collections::VecDeque;

use hol_tcp::base::{Duration, Seed, Time};
use hol_tcp::transport::{Command, Endpoint as _, Event, Input, Message, Output, drain};
use hol_tcp::wire::{Packet, ipv4};
use hol_tcp::{Config, Endpoint};

const DELAY: Duration = Duration::from_millis(10);
/// Number of the packet of the client that is lost: the sixth, which is its fourth data segment.
const LOST: usize = 6;

fn main() {
    for (name, config) in [
        ("Linux 6.12", Config::linux_6_12()),
        ("Linux 2.6.16", Config::linux_2_6_16()),
        ("RFC 9293", Config::rfc9293()),
    ] {
        println!("\n{name}");
        transfer(&config, 12_000);
    }
}

/// Prints the packets of a transfer until all octets have arrived.
fn transfer(config: &Config, length: usize) {
    let (client, server) = ((ipv4(10, 0, 0, 1), 40_000), (ipv4(10, 0, 0, 2), 80));
    let mut ends = [
        Endpoint::connect(config.clone(), client, server, Seed(1).rng()),
        Endpoint::listen(config.clone(), server, Seed(2).rng()),
    ];
    let mut link: VecDeque<(Time, usize, Packet)> = VecDeque::new();
    let (mut now, mut waits, mut received, mut sent) = (Time::ZERO, [None; 2], 0, 0);
    ends[0].handle(now, Input::Command(Command::Connect));
    while received < length {
        for at in 0..2 {
            waits[at] = drain(&mut ends[at], now, |end, output| match output {
                Output::Transmit(packet) => {
                    sent += usize::from(at == 0);
                    let is_lost = at == 0 && sent == LOST;
                    println!(
                        "{:9.3} ms  {packet}{}",
                        now.as_secs_f64() * 1e3,
                        if is_lost { "  (lost)" } else { "" }
                    );
                    if !is_lost {
                        link.push_back((now + DELAY, 1 - at, packet));
                    }
                }
                Output::Event(Event::Connected) if at == 0 => {
                    end.handle(now, Input::Command(Command::Send(Message::new(vec![7; length]))));
                }
                Output::Event(Event::Received(data)) => received += data.payload.len(),
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
}
