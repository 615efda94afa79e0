//! The AUTH chunk. RFC 4895 section 5.1.

use bytes::{Buf, BufMut, Bytes};

use crate::ParseError;

/// The AUTH chunk, which authenticates every chunk after it in its packet. RFC 4895 section 5.1.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Type = 15    |  Flags = 0    |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |     Shared Key Identifier     |        HMAC Identifier        |
/// +-------------------------------+-------------------------------+
/// |                             HMAC                              |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// Identifier of the endpoint pair shared key; 0 is the empty key.
    pub shared_key_id: u16,
    /// HMAC identifier: 1 is SHA-1, 3 is SHA-256.
    pub hmac_id: u16,
    /// The HMAC; its length depends on the algorithm.
    pub hmac: Bytes,
}

impl Auth {
    /// The chunk type of AUTH.
    pub const KIND: u8 = 15;

    pub(super) fn value_length(&self) -> usize {
        4 + self.hmac.len()
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u16(self.shared_key_id);
        out.put_u16(self.hmac_id);
        out.put_slice(&self.hmac);
    }

    pub(super) fn parse_value(mut value: Bytes) -> Result<Self, ParseError> {
        Ok(Self { shared_key_id: value.try_get_u16()?, hmac_id: value.try_get_u16()?, hmac: value })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;

    /// RFC 4895 section 5.1 by hand.
    #[test]
    fn the_hmac_follows_the_key_and_the_algorithm() {
        let auth = Auth { shared_key_id: 2, hmac_id: 3, hmac: Bytes::from_static(&[7, 8, 9]) };
        Chunk::Auth(Box::new(auth)).assert_octets(&[15, 0, 0, 11, 0, 2, 0, 3, 7, 8, 9, 0]);
    }

    #[test]
    fn an_auth_without_an_algorithm_is_refused() {
        let value = Bytes::from_static(&[0, 2, 0]);
        assert_eq!(Auth::parse_value(value), Err(ParseError::Truncated));
    }
}
