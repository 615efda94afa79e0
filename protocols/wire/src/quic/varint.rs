//! Variable-length integers. RFC 9000 section 16.

use crate::ParseError;

/// Removes a variable-length integer from the front of `octets` and returns it. RFC 9000 section
/// 16.
pub(super) fn take(octets: &mut &[u8]) -> Result<u64, ParseError> {
    let first = *octets.first().ok_or(ParseError::Truncated)?;
    let length = 1 << (first >> 6);
    let whole = skip(octets, length)?;
    let value = whole.iter().fold(0, |value, octet| value << 8 | u64::from(*octet));
    Ok(value & ((1 << (8 * length - 2)) - 1))
}

/// Removes `length` octets from the front of `octets` and returns them.
pub(super) fn skip<'a>(octets: &mut &'a [u8], length: u64) -> Result<&'a [u8], ParseError> {
    let length = usize::try_from(length).map_err(|_| ParseError::Truncated)?;
    octets.split_off(..length).ok_or(ParseError::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn the_examples_of_rfc_9000_are_read() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (octets, value) in examples {
            for short in 0..octets.len() {
                assert_eq!(take(&mut &octets[..short]), Err(ParseError::Truncated));
            }
            let mut rest = octets;
            assert_eq!((take(&mut rest), rest.len()), (Ok(value), 0));
        }
    }
}
