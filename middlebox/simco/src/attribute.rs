//! Attributes: type, length, value. RFC 4540 section 4.3.
//!
//! A body is a fixed sequence of attributes (section 5). Each message lists its sequence once for parsing and
//! once for emitting; the sequence for emitting yields both the length and the octets.

use bytes::{BufMut, Bytes};

use crate::ParseError;

/// A value of an attribute, whose type is an attribute type of SIMCO.
pub(crate) trait Attribute: Sized {
    /// The number of the attribute type.
    const KIND: u16;
    /// Parses a value; `None` if it does not have the attribute's format.
    fn parse(value: &[u8]) -> Option<Self>;
    /// Returns the length of the encoded value, in octets.
    fn length(&self) -> usize;
    /// Encodes the value and appends it to `out`, without the attribute's type and length.
    fn emit(&self, out: &mut Vec<u8>);
}

/// Length of an attribute's header (its type and length), in octets.
const ATTRIBUTE_HEADER: usize = 4;

/// A parser of the attributes of a body, in order.
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    pub fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    /// Returns true if no attribute is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next attribute, which must be an `A`.
    #[inline]
    pub fn next<A: Attribute>(&mut self) -> Result<A, ParseError> {
        self.take().ok_or(ParseError::Attribute(A::KIND))
    }

    /// Returns the next attribute, which must be an `A`; `None` if none is left.
    pub fn next_if_any<A: Attribute>(&mut self) -> Result<Option<A>, ParseError> {
        if self.is_empty() { Ok(None) } else { self.next().map(Some) }
    }

    /// Returns the next attribute if it is an `A`, otherwise `None`.
    pub fn next_if<A: Attribute>(&mut self) -> Result<Option<A>, ParseError> {
        if self.0.starts_with(&A::KIND.to_be_bytes()) { self.next().map(Some) } else { Ok(None) }
    }

    /// Returns an error if any attributes are left.
    pub fn finish(self) -> Result<(), ParseError> {
        if self.is_empty() { Ok(()) } else { Err(ParseError::SurplusAttribute) }
    }

    #[inline]
    fn take<A: Attribute>(&mut self) -> Option<A> {
        let ([k0, k1, l0, l1], rest) = self.0.split_first_chunk::<ATTRIBUTE_HEADER>()?;
        let length = u16::from_be_bytes([*l0, *l1]);
        let (value, rest) = rest.split_at_checked(usize::from(length))?;
        self.0 = rest;
        if u16::from_be_bytes([*k0, *k1]) == A::KIND { A::parse(value) } else { None }
    }
}

/// A destination to which the attributes of a body are written in order.
pub(crate) trait Sink {
    fn add<A: Attribute>(&mut self, attribute: &A);

    fn add_if_any<A: Attribute>(&mut self, attribute: &Option<A>) {
        if let Some(attribute) = attribute {
            self.add(attribute);
        }
    }
}

/// A sink that only counts the octets written to it.
#[derive(Default)]
pub(crate) struct LengthCounter(pub usize);

impl Sink for LengthCounter {
    #[inline]
    fn add<A: Attribute>(&mut self, attribute: &A) {
        self.0 += ATTRIBUTE_HEADER + attribute.length();
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn add<A: Attribute>(&mut self, attribute: &A) {
        let length = u16::try_from(attribute.length()).expect("attributes are at most 4096 octets");
        self.put_u32(u32::from(A::KIND) << 16 | u32::from(length));
        attribute.emit(self);
    }
}

/// Defines an attribute whose value is a 32-bit number.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl Attribute for $name {
            const KIND: u16 = $kind;
            fn parse(value: &[u8]) -> Option<Self> {
                Some(Self(u32::from_be_bytes(value.try_into().ok()?)))
            }
            fn length(&self) -> usize {
                4
            }
            fn emit(&self, out: &mut Vec<u8>) {
                out.put_u32(self.0);
            }
        }
    };
}
number!(
    /// The policy rule identifier (PID), which the middlebox chooses. RFC 4540 section 4.3.4.
    Pid, 0x0005
);
number!(
    /// The identifier of a group of policy rules (GID), which the middlebox chooses. RFC 4540 section 4.3.5.
    Gid, 0x0006
);
number!(
    /// The lifetime of a policy rule in seconds, requested or remaining; zero ends the rule. RFC 4540 section 4.3.6.
    Lifetime, 0x0007
);

/// Defines an attribute whose value is a string of at most `$limit` octets without further structure.
macro_rules! opaque {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $limit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(Bytes);

        impl $name {
            /// Maximum length of the value in octets.
            pub const LIMIT: usize = $limit;

            /// Creates the attribute with these octets as its value.
            ///
            /// # Panics
            ///
            /// If there are more than [`LIMIT`](Self::LIMIT) octets.
            pub fn new(octets: impl Into<Bytes>) -> Self {
                let octets = octets.into();
                assert!(octets.len() <= Self::LIMIT, "{} octets are too long for {}", octets.len(), stringify!($name));
                Self(octets)
            }
            /// Returns the octets of the value.
            pub fn octets(&self) -> &[u8] {
                &self.0
            }
        }

        impl Attribute for $name {
            const KIND: u16 = $kind;
            fn parse(value: &[u8]) -> Option<Self> {
                (value.len() <= Self::LIMIT).then(|| Self(Bytes::copy_from_slice(value)))
            }
            fn length(&self) -> usize {
                self.0.len()
            }
            fn emit(&self, out: &mut Vec<u8>) {
                out.put_slice(&self.0);
            }
        }
    };
}
opaque!(
    /// A challenge, with which one end requests the other to authenticate itself. RFC 4540 section 4.3.2.
    Challenge, 0x0002, 4096
);
opaque!(
    /// A token, which answers a challenge; empty if the sender cannot authenticate itself. RFC 4540 section 4.3.2.
    Token, 0x0003, 4096
);
opaque!(
    /// The name of the agent that owns a policy rule, according to the middlebox. RFC 4540 section 4.3.7.
    Owner, 0x0008, 255
);

impl Token {
    /// Returns the token that means "I cannot authenticate myself". RFC 4540 section 7.2.
    pub fn empty() -> Self {
        Self::new(Bytes::new())
    }
}

/// The version of the protocol. RFC 4540 section 4.3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Major version number.
    pub major: u8,
    /// Minor version number.
    pub minor: u8,
}

impl Version {
    /// The version that RFC 4540 defines.
    pub const SIMCO_3_0: Self = Self { major: 3, minor: 0 };
}

impl Attribute for Version {
    const KIND: u16 = 0x0001;
    fn parse(value: &[u8]) -> Option<Self> {
        let [major, minor, _reserved @ ..]: [u8; 4] = value.try_into().ok()?;
        Some(Self { major, minor })
    }
    fn length(&self) -> usize {
        4
    }
    fn emit(&self, out: &mut Vec<u8>) {
        out.put_slice(&[self.major, self.minor, 0, 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of an attribute need not be a multiple of four, and there is no padding. RFC 4540 section 4.3.2.
    #[test]
    fn an_opaque_attribute_is_followed_directly_by_the_next() {
        let mut out = Vec::new();
        out.add(&Owner::new("abc"));
        out.add(&Pid(5));
        assert_eq!(out, b"\x00\x08\x00\x03abc\x00\x05\x00\x04\x00\x00\x00\x05");
        let mut attributes = Attributes::new(&out);
        assert_eq!(attributes.next(), Ok(Owner::new("abc")));
        assert_eq!(attributes.next(), Ok(Pid(5)));
        assert_eq!(attributes.finish(), Ok(()));
    }

    /// RFC 4540 section 6, step 5.
    #[test]
    fn a_wrong_type_or_an_overlong_length_is_refused() {
        let pid = [0x00, 0x05, 0x00, 0x04, 0, 0, 0, 5];
        assert_eq!(Attributes::new(&pid).next::<Gid>(), Err(ParseError::Attribute(0x0006)));
        for cut in 0..pid.len() {
            assert_eq!(Attributes::new(&pid[..cut]).next::<Pid>(), Err(ParseError::Attribute(0x0005)));
        }
        let long_owner = [&[0x00, 0x08, 0x01, 0x00][..], &[0; 256]].concat();
        assert_eq!(Attributes::new(&long_owner).next::<Owner>(), Err(ParseError::Attribute(0x0008)));
    }
}
