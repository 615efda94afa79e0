//! Two network namespaces with a link between them.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use hol_sockets::End;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// They are gone when this is.
pub struct Pair {
    names: [String; 2],
}

impl Pair {
    /// The client's and the server's.
    pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

    /// Makes them; `None`, said aloud, where that needs more than there is. With `HOL_REQUIRE_NAMESPACES` set that is a
    /// failure.
    pub fn if_possible(test: &str) -> Option<Self> {
        let pair = Self::new();
        let missing = pair.as_ref().err().map_or("", String::as_str);
        assert!(pair.is_ok() || std::env::var_os("HOL_REQUIRE_NAMESPACES").is_none(), "{test}: {missing}");
        if pair.is_err() {
            eprintln!("{test}: SKIPPED, for there are no namespaces here: {missing}");
        }
        pair.ok()
    }

    /// Needs root and `ip`.
    fn new() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |side: char| format!("hol-sockets-{}-{number}{side}", std::process::id());
        let pair = Self { names: ['c', 's'].map(name) };
        let [client, server] = &pair.names;
        for name in &pair.names {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        ip(&format!("-n {client} link add to-peer type veth peer name to-peer netns {server}"))?;
        for (name, address) in pair.names.iter().zip(Self::ADDRESSES) {
            ip(&format!("-n {name} address add {address}/24 dev to-peer"))?;
            ip(&format!("-n {name} link set to-peer up"))?;
        }
        Ok(pair)
    }

    /// The name of the server's.
    pub fn server(&self) -> &str {
        &self.names[1]
    }

    /// Moves the calling thread, which a test has to itself.
    pub fn enter(&self, end: End) -> io::Result<()> {
        let name = match end {
            End::Client => &self.names[0],
            End::Server => &self.names[1],
        };
        let namespace = File::open(format!("/run/netns/{name}"))?;
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            drop(ip(&format!("netns delete {name}")));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
