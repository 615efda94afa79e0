//! SCTP associations over several addresses: their ports and verification tags identify them, whatever the addresses are (RFC 9260 sections
//! 1.3 and 5.1.2).

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The sockets between which each SCTP association was opened, by the ports and the verification tag of its packets.
#[derive(Debug, Default)]
pub(crate) struct AssociationSockets {
    by_tag: BTreeMap<(u16, u16, u32), [SocketAddr; 2]>,
}

/// Maximum number of remembered associations; further ones are identified by their addresses.
const MAX_ASSOCIATIONS: usize = 1 << 16;

impl AssociationSockets {
    /// Returns the sockets between which the association of this packet was opened. If the association is
    /// unknown, or the packet belongs to another protocol, returns the sockets of the packet itself.
    pub fn sockets(&mut self, own: [SocketAddr; 2], tags: Option<(u32, Option<u32>)>) -> [SocketAddr; 2] {
        let Some((tag, announced)) = tags else { return own };
        let [from, to] = own;
        let known = self.by_tag.get(&(from.port(), to.port(), tag)).copied();
        let [from, to] = known.unwrap_or(own);
        if let Some(announced) = announced.filter(|_| self.by_tag.len() < MAX_ASSOCIATIONS) {
            // Packets to its sender carry the tag that it announces.
            self.by_tag.insert((to.port(), from.port(), announced), [to, from]);
        }
        [from, to]
    }
}
