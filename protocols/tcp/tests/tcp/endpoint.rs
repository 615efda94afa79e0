//! The stacks of the stack files, and an application's writes.

use bytes::Bytes;
use hol_tcp::Config;
use hol_transport::{Command, Message, Reliability};

/// Returns the configuration of a stack file.
pub fn stack(name: &str) -> Config {
    match name {
        "linux-6.12" => Config::linux_6_12(),
        "linux-2.6.16" => Config::linux_2_6_16(),
        "linux-2.6.10" => Config::linux_2_6_10(),
        "rfc" => Config::rfc9293(),
        _ => panic!("no stack {name}"),
    }
}

/// Returns the command that writes `octets`.
pub fn message(octets: Vec<u8>) -> Command {
    Command::Send(Message {
        stream: 0,
        unordered: false,
        reliability: Reliability::Full,
        ppid: 0,
        payload: Bytes::from(octets),
    })
}
