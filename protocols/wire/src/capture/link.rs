//! Removes the link-layer header of a captured packet.
//!
//! The numbers are those of <https://www.tcpdump.org/linktypes.html>.

/// The link-layer header type of a captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u32);

/// The packets of this link type cannot be read, because its header is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "link type {0}{name}; supported are Ethernet, PPP, IEEE 802.11, raw IP, Linux's cooked captures and loopback",
    name = name(.0)
)]
pub struct UnsupportedLinkType(pub u32);

/// Returns the name of a common link type in parentheses; empty for other types.
const fn name(link: &u32) -> &'static str {
    match link {
        189 | 220 => " (USB)",
        187 | 201 => " (Bluetooth)",
        195 | 215 | 230 => " (IEEE 802.15.4)",
        _ => "",
    }
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Ethertypes of VLAN tags: those of IEEE 802.1Q and 802.1ad, and those that switches used before 802.1ad.
const VLAN_TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// Ethertypes of MPLS. RFC 5332 section 3.
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// Ethertype of PPPoE, session stage. RFC 2516 section 4.
const PPPOE: u16 = 0x8864;
/// Protocol type of Ethernet frames in GRE. RFC 1701.
const BRIDGED_ETHERNET: u16 = 0x6558;
/// Maximum nesting of headers. Tunnels beyond this depth are not opened; the result is then the IP packet of the
/// tunnel itself.
const MAX_DEPTH: u32 = 8;

impl LinkType {
    /// Returns the IP packet in a captured packet; if it is in tunnels, the innermost IP packet. `None` if there
    /// is no IP packet, or too few octets.
    pub fn ip_packet(self, octets: &[u8]) -> Result<Option<&[u8]>, UnsupportedLinkType> {
        let typed = |at: usize, header: usize| network(half(octets, at)?, octets.get(header..)?, 0);
        Ok(match self.0 {
            // Null and loopback: the header is the address family, which also follows from the first four bits of an
            // IP packet.
            0 | 108 => octets.get(4..).and_then(|ip| innermost_ip(ip, 0)),
            1 => ethernet(octets, 0),
            9 | 50 => ppp(octets, 0),
            // PPPoE session packets without Ethernet (51), and PPP after an octet for the direction (166).
            51 => octets.get(6..).and_then(|frame| ppp(frame, 0)),
            166 => octets.get(1..).and_then(|frame| ppp(frame, 0)),
            105 => ieee80211(octets),
            127 => octets.get(usize::from(half(octets, 2).unwrap_or(0).swap_bytes())..).and_then(ieee80211),
            // Raw IP: the link types of several systems, and those for IPv4 or IPv6 only.
            12 | 14 | 101 | 228 | 229 => innermost_ip(octets, 0),
            113 => typed(14, 16),
            // Linux's second cooked header starts with the protocol.
            276 => typed(0, 20),
            other => return Err(UnsupportedLinkType(other)),
        })
    }
}

/// Returns the IP packet that follows a header with the Ethertype `kind`.
fn network(kind: u16, octets: &[u8], depth: u32) -> Option<&[u8]> {
    match kind {
        _ if depth > MAX_DEPTH => None,
        IPV4 | IPV6 => innermost_ip(octets, depth + 1),
        PPPOE => ppp(octets.get(6..)?, depth + 1),
        BRIDGED_ETHERNET => ethernet(octets, depth + 1),
        kind if VLAN_TAGS.contains(&kind) => network(half(octets, 2)?, octets.get(4..)?, depth + 1),
        kind if MPLS.contains(&kind) => mpls(octets, depth),
        _ => None,
    }
}

/// Returns the IP packet in an Ethernet frame. An IEEE 802.3 frame has a length in place of the Ethertype, and
/// then LLC.
fn ethernet(octets: &[u8], depth: u32) -> Option<&[u8]> {
    const MAX_LENGTH: u16 = 1500;
    match half(octets, 12)? {
        length if length <= MAX_LENGTH => llc(octets.get(14..)?, depth),
        kind => network(kind, octets.get(14..)?, depth),
    }
}

/// Returns the IP packet after an LLC header with SNAP. RFC 1042.
fn llc(octets: &[u8], depth: u32) -> Option<&[u8]> {
    let rest = octets.strip_prefix(&[0xaa, 0xaa, 0x03, 0, 0, 0])?;
    network(half(rest, 0)?, rest.get(2..)?, depth)
}

/// Returns the IP packet in a PPP frame, which may lack the address and control fields (RFC 1661 section 2, RFC
/// 1662 section 3.1).
fn ppp(octets: &[u8], depth: u32) -> Option<&[u8]> {
    let octets = octets.strip_prefix(&[0xff, 0x03]).unwrap_or(octets);
    // A protocol number whose first octet is odd is compressed to that octet.
    let (protocol, rest) = match *octets.first()? {
        short if short & 1 == 1 => (u16::from(short), octets.get(1..)?),
        _ => (half(octets, 0)?, octets.get(2..)?),
    };
    // RFC 1332 section 3, RFC 5072 section 3, RFC 3032 section 4.3.
    match protocol {
        0x0021 | 0x0057 => innermost_ip(rest, depth),
        0x0281 => mpls(rest, depth),
        _ => None,
    }
}

/// Returns the IP packet that follows the MPLS labels. The first four bits after the last label must be an IP
/// version. RFC 3032 section 2.1.
fn mpls(octets: &[u8], depth: u32) -> Option<&[u8]> {
    let last = octets.chunks_exact(4).position(|label| label[2] & 1 == 1)?;
    let rest = octets.get(4 * (last + 1)..)?;
    matches!(rest.first()? >> 4, 4 | 6).then(|| innermost_ip(rest, depth + 1)).flatten()
}

/// Returns the IP packet in an unencrypted data frame of IEEE 802.11.
fn ieee80211(octets: &[u8]) -> Option<&[u8]> {
    let (control, flags) = (*octets.first()?, *octets.get(1)?);
    const DATA: u8 = 0x08;
    const PROTECTED: u8 = 0x40;
    // Quality of service adds two octets, and four addresses add six.
    let (has_quality, has_four) = (control & 0x80 != 0, flags & 0x03 == 0x03);
    let is_data = control & 0x0c == DATA && control & 0x40 == 0 && flags & PROTECTED == 0;
    let header = 24 + if has_four { 6 } else { 0 } + if has_quality { 2 } else { 0 };
    if is_data { llc(octets.get(header..)?, 0) } else { None }
}

/// Returns the innermost IP packet of a tunnel (IP in IP, GRE, VXLAN, GTP); returns other IP packets unchanged.
fn innermost_ip(ip: &[u8], depth: u32) -> Option<&[u8]> {
    const IPV4_IN_IP: u8 = 4;
    const IPV6_IN_IP: u8 = 41;
    const GRE: u8 = 47;
    const UDP: u8 = 17;
    if depth > MAX_DEPTH {
        return None;
    }
    ip.first()?;
    let inner = ip_payload(ip).and_then(|(protocol, payload)| match protocol {
        // RFC 2003 section 3.1, RFC 2473 section 3, RFC 4213 section 3.
        IPV4_IN_IP => inner_ip(payload, 4, depth),
        IPV6_IN_IP => inner_ip(payload, 6, depth),
        GRE => gre(payload, depth),
        UDP => vxlan(payload, depth).or_else(|| gtp(payload, depth)),
        _ => None,
    });
    Some(inner.unwrap_or(ip))
}

/// Returns the protocol number and the payload of an IP packet, after its extension headers; `None` for a
/// fragment.
fn ip_payload(ip: &[u8]) -> Option<(u8, &[u8])> {
    match ip.first()? >> 4 {
        4 if half(ip, 6)? & 0x3fff == 0 => Some((*ip.get(9)?, ip.get(usize::from(ip[0] & 0x0f) * 4..)?)),
        6 => {
            // RFC 8200 section 4: hop-by-hop options, routing and destination options.
            const EXTENSIONS: [u8; 3] = [0, 43, 60];
            let (mut protocol, mut payload) = (*ip.get(6)?, ip.get(40..)?);
            while EXTENSIONS.contains(&protocol) {
                let length = 8 * (usize::from(*payload.get(1)?) + 1);
                (protocol, payload) = (payload[0], payload.get(length..)?);
            }
            Some((protocol, payload))
        }
        _ => None,
    }
}

/// Returns the IP packet in a tunnel, which must have the IP version `version`.
fn inner_ip(octets: &[u8], version: u8, depth: u32) -> Option<&[u8]> {
    (octets.first()? >> 4 == version).then(|| innermost_ip(octets, depth + 1)).flatten()
}

/// Returns the IP packet in GRE. RFC 2784 section 2, with the key and sequence number of RFC 2890.
fn gre(payload: &[u8], depth: u32) -> Option<&[u8]> {
    let (flags, kind) = (half(payload, 0)?, half(payload, 2)?);
    let options = [0x8000_u16, 0x2000, 0x1000].iter().filter(|flag| flags & **flag != 0).count();
    const VERSION: u16 = 0x0007;
    let rest = payload.get(4 + 4 * options..).filter(|_| flags & VERSION == 0)?;
    network(kind, rest, depth + 1)
}

/// Returns the IP packet in VXLAN. RFC 7348 section 5.
fn vxlan(payload: &[u8], depth: u32) -> Option<&[u8]> {
    /// UDP ports of VXLAN: the one that RFC 7348 assigns, and the default of Linux.
    const PORTS: [u16; 2] = [4789, 8472];
    const VALID: u8 = 0x08;
    let is_vxlan = PORTS.contains(&half(payload, 2)?) && payload.get(8)? & VALID != 0;
    ethernet(payload.get(16..).filter(|_| is_vxlan)?, depth + 1)
}

/// Returns the IP packet in the user plane of GTP. 3GPP TS 29.281 section 5.
fn gtp(payload: &[u8], depth: u32) -> Option<&[u8]> {
    const PORT: u16 = 2152;
    /// The bits of a GTP header that mean version 1, and GTP (not GTP').
    const VERSION: u8 = 0x30;
    const G_PDU: u8 = 255;
    let (flags, kind) = (*payload.get(8)?, *payload.get(9)?);
    if half(payload, 2)? != PORT || flags & 0xf0 != VERSION || kind != G_PDU {
        return None;
    }
    let mut rest = payload.get(16..)?;
    if flags & 0x07 != 0 {
        // Sequence number, N-PDU number and the type of the first extension header, whose length is in units of 4 octets.
        let mut next = *rest.get(3)?;
        rest = rest.get(4..)?;
        while flags & 0x04 != 0 && next != 0 {
            let length = 4 * usize::from(*rest.first()?).max(1);
            next = *rest.get(length - 1)?;
            rest = rest.get(length..)?;
        }
    }
    inner_ip(rest, 4, depth).or_else(|| inner_ip(rest, 6, depth))
}

fn half(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IP packet of 20 octets, with a protocol that does not contain IP.
    const IP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 99, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];

    /// Returns an IP packet with another protocol and payload.
    fn around(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = IP.to_vec();
        packet[9] = protocol;
        [packet, payload.to_vec()].concat()
    }

    #[test]
    fn link_headers_are_removed() {
        let ether = |rest: &[u8]| [&[2; 12][..], rest].concat();
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        let data = |control: u8, flags: u8, header: usize| {
            let mut frame = vec![0; header];
            (frame[0], frame[1]) = (control, flags);
            [frame, snap.to_vec()].concat()
        };
        let radiotap = [&[0, 0, 12, 0][..], &[0; 8], &data(0x88, 1, 26)].concat();
        for (link, header) in [
            (1, ether(&[8, 0])),
            (1, ether(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 0x86, 0xdd])),
            (1, ether(&[0x91, 0, 0, 5, 0x81, 0, 0, 7, 8, 0])),
            // RFC 2516, RFC 1661: a session with IPv4, one with IPv6 and a VLAN around it.
            (1, ether(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21])),
            (1, ether(&[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x57])),
            (9, vec![0, 0x21]),
            (9, vec![0xff, 3, 0, 0x57]),
            (50, vec![0xff, 3, 0x21]),
            (166, vec![1, 0xff, 3, 0, 0x21]),
            // RFC 3032: two labels.
            (1, ether(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64])),
            (1, ether(&[&[0, 28], &snap[..]].concat())),
            (105, data(0x08, 2, 24)),
            (105, data(0x88, 3, 32)),
            (127, radiotap),
            (101, vec![]),
            (113, [&[0; 14][..], &[8, 0]].concat()),
            (113, [&[0; 14][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21]].concat()),
            (276, [&[8, 0][..], &[0; 18]].concat()),
            (0, vec![2, 0, 0, 0]),
            // RFC 2003: IP in IP, also after destination options of IPv6 (RFC 2473 section 4.1.1).
            (101, around(4, &[])),
            (101, [&[0x60, 0, 0, 0, 0, 28, 60, 9][..], &[0; 32], &[4, 0, 4, 1, 0, 0, 1, 0]].concat()),
            // 3GPP TS 29.281: GTP without and with a sequence number, and with the extension header of a PDU session.
            (101, around(17, &[9, 9, 8, 0x68, 0, 36, 0, 0, 0x30, 255, 0, 20, 0, 0, 0, 1])),
            (101, around(17, &[9, 9, 8, 0x68, 0, 40, 0, 0, 0x32, 255, 0, 24, 0, 0, 0, 1, 0, 7, 0, 0])),
            (
                101,
                around(
                    17,
                    &[9, 9, 8, 0x68, 0, 44, 0, 0, 0x34, 255, 0, 28, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0],
                ),
            ),
            (
                101,
                around(
                    17,
                    &[&[9, 9, 0x21, 0x18, 0, 50, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0][..], &ether(&[8, 0])].concat(),
                ),
            ),
            // RFC 2890: GRE with a key; RFC 7348: VXLAN.
            (101, around(47, &[0x20, 0, 8, 0, 0, 0, 0, 9])),
            (101, around(47, &[&[0, 0, 0x65, 0x58][..], &ether(&[8, 0])].concat())),
            (
                101,
                around(
                    17,
                    &[&[9, 9, 0x12, 0xb5, 0, 50, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0][..], &ether(&[8, 0])].concat(),
                ),
            ),
        ] {
            let frame = [&header[..], &IP].concat();
            assert_eq!(LinkType(link).ip_packet(&frame), Ok(Some(&IP[..])), "{link}: {header:?}");
            for length in 0..frame.len() {
                let _ = LinkType(link).ip_packet(&frame[..length]);
            }
        }
    }

    #[test]
    fn other_protocols_give_none_and_unknown_links_an_error() {
        let arp = [&[2; 12][..], &[8, 6, 0, 0]].concat();
        assert_eq!(LinkType(1).ip_packet(&arp), Ok(None));
        assert_eq!(LinkType(1).ip_packet(&arp[..13]), Ok(None));
        // Encrypted, and without data.
        let encrypted = [&[0x08, 0x41][..], &[0; 22], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &IP].concat();
        assert_eq!(LinkType(105).ip_packet(&encrypted), Ok(None));
        let udp = around(17, &[0, 53, 0x30, 0x39, 0, 8, 0, 0]);
        assert_eq!(LinkType(101).ip_packet(&udp), Ok(Some(&udp[..])));
        let problem = LinkType(189).ip_packet(&arp).unwrap_err().to_string();
        assert!(problem.starts_with("link type 189 (USB); supported are Ethernet"), "{problem}");
    }

    /// Tunnels of each kind, beyond the maximum nesting: a packet around the innermost one is the result.
    #[test]
    fn nested_tunnels_are_limited() {
        let snap = [&[2; 12][..], &[0, 28, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
        let vxlan = [&[9, 9, 0x12, 0xb5, 0, 50, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0][..], &snap].concat();
        for (protocol, header) in [
            (4, vec![]),
            (47, vec![0, 0, 8, 0]),
            // Ethernet with LLC, PPPoE with IPv4 and with MPLS.
            (47, [&[0, 0, 0x65, 0x58][..], &snap].concat()),
            (47, vec![0, 0, 0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21]),
            (47, vec![0, 0, 0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 2, 0x81, 0, 2, 1, 64]),
            (17, vxlan),
        ] {
            let nested = |count: usize| {
                (0..count).fold(IP.to_vec(), |packet, _| around(protocol, &[&header[..], &packet].concat()))
            };
            assert_eq!(LinkType(101).ip_packet(&nested(2)), Ok(Some(&IP[..])), "{header:?}");
            let length = nested(40).len();
            let depth = LinkType(101).ip_packet(&nested(40)).unwrap().map(|ip| 40 - 40 * ip.len() / length);
            assert!(matches!(depth, Some(2..=9)), "{header:?}: {depth:?}");
        }
    }
}
