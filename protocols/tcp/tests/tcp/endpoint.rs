//! The stacks that are shipped, and what an application writes.

use bytes::Bytes;
use hol_tcp::Config;
use hol_transport::{Command, Message, Reliability};

/// The stacks as they are shipped.
pub fn stack(name: &str) -> Config {
    match name {
        "linux-6.12" => Config::linux_6_12(),
        "linux-2.6.16" => Config::linux_2_6_16(),
        "linux-2.6.10" => Config::linux_2_6_10(),
        "rfc" => Config::rfc9293(),
        _ => panic!("no stack {name}"),
    }
}

/// A write.
pub fn message(octets: Vec<u8>) -> Command {
    Command::Send(Message {
        stream: 0,
        unordered: false,
        reliability: Reliability::Full,
        ppid: 0,
        payload: Bytes::from(octets),
    })
}
