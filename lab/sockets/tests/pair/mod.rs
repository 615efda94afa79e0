//! Two network namespaces with a link between them.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Two network namespaces, deleted when this is dropped.
pub struct Pair {
    /// Names of the client's and the server's namespace.
    pub names: [String; 2],
}

impl Pair {
    /// Addresses of the client and the server.
    pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

    /// Creates the namespaces and the link.
    ///
    /// # Panics
    /// Without root or `ip`.
    pub fn new() -> Self {
        Self::make().unwrap_or_else(|error| panic!("needs root and iproute2: {error}"))
    }

    fn make() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |side: char| format!("hol-{}-{number}{side}", std::process::id());
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
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            drop(ip(&format!("netns delete {name}")));
        }
    }
}

/// Runs ip(8).
pub fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
