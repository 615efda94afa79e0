//! Detects single-bit errors from a wrong checksum.

/// The polynomial of CRC-32C (RFC 9260 appendix A), with its bits in reverse order as in the table of that appendix.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// Returns true if a single changed bit in `octets` octets can change their checksum by `difference` (XOR).
///
/// CRCs are linear: the difference depends only on the bit's position, and each position towards the start is one more
/// step of the CRC register.
pub(crate) fn is_single_bit_error(difference: u32, octets: usize) -> bool {
    let mut register = POLYNOMIAL;
    (0..octets * 8).any(|_| {
        let is_it = register == difference;
        register = if register & 1 == 1 { register >> 1 ^ POLYNOMIAL } else { register >> 1 };
        is_it
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_bit_errors_are_recognised_and_double_ones_are_not() {
        let octets: Vec<u8> = (0..200).collect();
        let whole = crc32c::crc32c(&octets);
        for bit in 0..octets.len() * 8 {
            let mut changed = octets.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(is_single_bit_error(whole ^ crc32c::crc32c(&changed), octets.len()), "bit {bit}");
            changed[(bit / 8 + 50) % 200] ^= 0x10;
            assert!(
                !is_single_bit_error(whole ^ crc32c::crc32c(&changed), octets.len()),
                "bit {bit} and another"
            );
        }
    }
}
