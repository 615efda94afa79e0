//! Builds netlink messages.

/// Flag that marks a request (`NLM_F_REQUEST` of linux/netlink.h).
const REQUEST: u16 = 1;
/// Flag that requests an acknowledgement (`NLM_F_ACK`).
pub(crate) const ACK: u16 = 4;
/// Flags that request a list (`NLM_F_DUMP`).
pub(crate) const DUMP: u16 = 0x300;
/// Flag that creates the described object (`NLM_F_CREATE`).
pub const CREATE: u16 = 0x400;
/// Flag that replaces an existing object (`NLM_F_REPLACE`).
pub const REPLACE: u16 = 0x100;
/// Flag that makes the request fail if the object exists (`NLM_F_EXCL`).
pub const EXCLUSIVE: u16 = 0x200;
/// Length of a message header in octets.
pub(crate) const HEADER_LENGTH: usize = 16;

/// A message to which attributes are being added.
#[derive(Debug)]
pub struct Message {
    octets: Vec<u8>,
}

impl Message {
    /// Creates a request of type `kind` that contains `structure`.
    pub fn new(kind: u16, flags: u16, structure: &[u8]) -> Self {
        let mut octets = vec![0; HEADER_LENGTH];
        octets[4..6].copy_from_slice(&kind.to_ne_bytes());
        octets[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
        octets.extend_from_slice(structure);
        let mut message = Self { octets };
        message.pad();
        message
    }

    /// Appends an attribute to the message.
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.attribute(kind, |message| message.octets.extend_from_slice(value));
        self
    }

    /// Adds an attribute whose value is a number in host byte order.
    pub fn with_number(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_ne_bytes())
    }

    /// Adds an attribute whose value is a name, terminated by a zero octet.
    pub fn with_name(mut self, kind: u16, name: &str) -> Self {
        self.attribute(kind, |message| {
            message.octets.extend_from_slice(name.as_bytes());
            message.octets.push(0);
        });
        self
    }

    /// Adds an attribute that consists of `structure` and of the attributes that `fill` adds.
    pub fn with_nested(mut self, kind: u16, structure: &[u8], fill: impl FnOnce(Self) -> Self) -> Self {
        self.attribute(kind, |message| {
            message.octets.extend_from_slice(structure);
            message.pad();
            let inner = std::mem::replace(message, Self { octets: Vec::new() });
            *message = fill(inner);
        });
        self
    }

    fn attribute(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.octets.len();
        self.octets.extend_from_slice(&[0; 4]);
        fill(self);
        let length = (self.octets.len() - start) as u16;
        self.octets[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.octets[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.pad();
    }

    fn pad(&mut self) {
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }

    /// Adds flags to the header.
    pub(crate) fn with_flags(mut self, flags: u16) -> Self {
        let all = u16::from_ne_bytes([self.octets[6], self.octets[7]]) | flags;
        self.octets[6..8].copy_from_slice(&all.to_ne_bytes());
        self
    }

    /// Returns the octets of the message. The kernel's answers carry this sequence number.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.octets.len() as u32;
        self.octets[..4].copy_from_slice(&length.to_ne_bytes());
        self.octets[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.octets
    }
}
