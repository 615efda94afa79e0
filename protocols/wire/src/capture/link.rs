//! Removes the link-layer header of a captured packet.
//!
//! The numbers are those of <https://www.tcpdump.org/linktypes.html>.

/// The link type of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u32);

/// Packets of this link type are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("link type {0}{name}; read are Ethernet, raw IP, Linux' cooked captures and loopback", name = name(.0))]
pub struct UnknownLink(pub u32);

/// Returns the name of a common link type.
const fn name(link: &u32) -> &'static str {
    match link {
        105 => " (IEEE 802.11)",
        127 => " (IEEE 802.11 with radiotap)",
        189 | 220 => " (USB)",
        9 => " (PPP)",
        187 | 201 => " (Bluetooth)",
        _ => "",
    }
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

impl LinkType {
    /// Returns the IP packet in these octets; `None` for another protocol, or too few octets.
    pub fn ip_packet(self, octets: &[u8]) -> Result<Option<&[u8]>, UnknownLink> {
        Ok(match self.0 {
            // Null and loopback: the address family, which the first digit of an IP packet gives too.
            0 | 108 => octets.get(4..),
            1 => ethernet(octets),
            // Raw IP, under its names of several systems and of one version.
            12 | 14 | 101 | 228 | 229 => Some(octets),
            113 => typed(octets, 14, 16),
            // Linux' second cooked header starts with the protocol.
            276 => typed(octets, 0, 20),
            other => return Err(UnknownLink(other)),
        })
    }
}

/// Returns the packet after a header in which two octets give the protocol.
fn typed(octets: &[u8], kind: usize, header: usize) -> Option<&[u8]> {
    let kind = octets.get(kind..kind + 2)?;
    matches!(u16::from_be_bytes([kind[0], kind[1]]), IPV4 | IPV6).then_some(octets.get(header..)?)
}

/// IEEE 802.3, with tags of IEEE 802.1Q and 802.1ad.
fn ethernet(octets: &[u8]) -> Option<&[u8]> {
    const TAGS: [u16; 2] = [0x8100, 0x88a8];
    let mut at = 12;
    loop {
        let kind = octets.get(at..at + 2)?;
        if !TAGS.contains(&u16::from_be_bytes([kind[0], kind[1]])) {
            return typed(octets, at, at + 2);
        }
        at += 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_has_its_header_taken_off() {
        let frame = |header: &[u8]| [header, b"\x45ip"].concat();
        let ethernet = [&[2; 12][..], &[8, 0]].concat();
        let tagged = [&[2; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 0x86, 0xdd]].concat();
        let cooked = [&[0; 14][..], &[8, 0]].concat();
        let cooked2 = [&[8, 0][..], &[0; 18]].concat();
        for (link, header) in [
            (1, &ethernet[..]),
            (1, &tagged),
            (101, &[]),
            (113, &cooked),
            (276, &cooked2),
            (0, &[2, 0, 0, 0]),
        ] {
            assert_eq!(LinkType(link).ip_packet(&frame(header)), Ok(Some(&b"\x45ip"[..])), "{link}");
        }
    }

    #[test]
    fn other_protocols_are_none_and_other_links_are_named() {
        let arp = [&[2; 12][..], &[8, 6, 0, 0]].concat();
        assert_eq!(LinkType(1).ip_packet(&arp), Ok(None));
        assert_eq!(LinkType(1).ip_packet(&arp[..13]), Ok(None));
        let problem = LinkType(127).ip_packet(&arp).unwrap_err().to_string();
        assert!(problem.starts_with("link type 127 (IEEE 802.11 with radiotap)"), "{problem}");
    }
}
