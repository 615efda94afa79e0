//! The stacks that are shipped, and what an application writes.

use bytes::Bytes;
use hol_tcp::Config;
use hol_transport::{Command, Message, Reliability};

/// The stacks as they are shipped.
pub fn stack(name: &str) -> Config {
    let file = match name {
        "linux-6.12" => include_str!("../../../../stacks/linux-6.12.toml"),
        "linux-2.6.16" => include_str!("../../../../stacks/linux-2.6.16.toml"),
        "linux-2.6.10" => include_str!("../../../../stacks/linux-2.6.10.toml"),
        "rfc" => include_str!("../../../../stacks/rfc.toml"),
        _ => panic!("no stack {name}"),
    };
    let file: toml::Table = file.parse().expect("a stack file is TOML");
    file["tcp"].clone().try_into().expect("a stack file names every behaviour")
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
