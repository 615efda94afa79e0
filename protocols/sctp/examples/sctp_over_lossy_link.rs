//! Sends 100 messages between two SCTP endpoints, first on one stream, then on eight. The link delays each packet by
//! 10 ms and loses one packet in ten. A message waits only for earlier ones of its own stream.

use std::collections::VecDeque;

use hol_sctp::base::{Duration, Seed, Time};
use hol_sctp::transport::{Command, Endpoint as _, Event, Input, Message, Output, drain};
use hol_sctp::wire::ipv4;
use hol_sctp::{Config, ConfigError, Endpoint};

const DELAY: Duration = Duration::from_millis(10);
const MESSAGES: u32 = 100;

fn main() -> Result<(), ConfigError> {
    for streams in [1, 8] {
        let config = Config::linux_6_12().with(|config| config.streams = streams)?;
        let wait = transfer(&config);
        println!("{streams} streams: complete messages waited {} ms for earlier ones", wait.as_millis());
    }
    Ok(())
}

/// Simulates a transfer with `config`; returns the sum of the head-of-line waits of all messages.
fn transfer(config: &Config) -> Duration {
    let (client, server) = (vec![ipv4(10, 0, 0, 1)], vec![ipv4(10, 0, 0, 2)]);
    let mut ends = [
        Endpoint::connect(config.clone(), client, 1, server.clone(), 2, Seed(1).rng()),
        Endpoint::listen(config.clone(), server, 2, Seed(2).rng()),
    ];
    let (mut link, mut loss) = (VecDeque::new(), Seed(3).rng());
    let (mut now, mut waits, mut received, mut waited) = (Time::ZERO, [None; 2], 0, Duration::ZERO);
    ends[0].handle(now, Input::Command(Command::Connect));
    while received < MESSAGES {
        for at in 0..2 {
            waits[at] = drain(&mut ends[at], now, |end, output| match output {
                Output::Transmit(packet) if !loss.chance(0.1) => {
                    link.push_back((now + DELAY, 1 - at, packet));
                }
                Output::Event(Event::Connected) if at == 0 => {
                    for number in 0..MESSAGES {
                        let stream = number as u16 % config.streams;
                        let message = Message { stream, ..Message::new(vec![7; 1000]) };
                        end.handle(now, Input::Command(Command::Send(message)));
                    }
                }
                Output::Event(Event::Received(message)) => {
                    received += 1;
                    waited += now.since(message.delivery_times.arrived);
                }
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
    waited
}
