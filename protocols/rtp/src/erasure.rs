//! A Reed-Solomon code against erasures: any k of n symbols restore the others. Rizzo 1997, *Effective
//! erasure codes for reliable computer communication protocols*, with the points and the field of that code
//! (and of zfec, which is based on it).
//!
//! The symbols are the values of one polynomial of degree k − 1 at n points; the first k are the data.

/// The powers of α in GF(2⁸) modulo x⁸ + x⁴ + x³ + x² + 1. They are stored twice in a row, so that the sum of two
/// exponents is a valid index.
const EXP: [u8; 510] = powers();
/// The logarithm to the base α of each element except zero.
const LOG: [u8; 256] = logarithms();

/// Maximum number of symbols. Each symbol has a point of its own, one of the 256 elements of the field.
pub(crate) const MAX_SYMBOLS: u16 = 256;

const fn powers() -> [u8; 510] {
    let (mut powers, mut at, mut power) = ([0; 510], 0, 1_u16);
    while at < 255 {
        powers[at] = power as u8;
        powers[at + 255] = power as u8;
        power <<= 1;
        if power > 255 {
            power ^= 0x11d;
        }
        at += 1;
    }
    powers
}

const fn logarithms() -> [u8; 256] {
    let (mut logarithms, mut at) = ([0; 256], 0);
    while at < 255 {
        logarithms[EXP[at] as usize] = at as u8;
        at += 1;
    }
    logarithms
}

fn product(a: u8, b: u8) -> u8 {
    let [a, b] = [a, b].map(usize::from);
    if a == 0 || b == 0 { 0 } else { EXP[usize::from(LOG[a]) + usize::from(LOG[b])] }
}

/// Returns the quotient of two elements.
///
/// # Panics
/// If `b` is zero; differences of distinct points are not.
fn quotient(a: u8, b: u8) -> u8 {
    assert!(b != 0, "two symbols have the same index");
    if a == 0 { 0 } else { EXP[usize::from(LOG[usize::from(a)]) + 255 - usize::from(LOG[usize::from(b)])] }
}

/// Returns the evaluation point of the symbol at `place`: zero for the first, then the powers of α.
fn point(place: u8) -> u8 {
    if place == 0 { 0 } else { EXP[usize::from(place) - 1] }
}

/// Computes the symbol at `place` by Lagrange interpolation from k other symbols of the same length and their places.
/// In GF(2^8) subtraction is addition.
///
/// # Panics
/// If two of them have the same place.
pub(crate) fn compute_symbol(known: &[(u8, &[u8])], place: u8) -> Vec<u8> {
    let x = point(place);
    let mut symbol = vec![0; known.first().map_or(0, |(_, octets)| octets.len())];
    for (index, (of, octets)) in known.iter().enumerate() {
        let others = known.iter().enumerate().filter(|(other, _)| *other != index);
        let weight = others.fold(1, |weight, (_, (other, _))| {
            quotient(product(weight, x ^ point(*other)), point(*of) ^ point(*other))
        });
        symbol.iter_mut().zip(*octets).for_each(|(sum, octet)| *sum ^= product(weight, *octet));
    }
    symbol
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(data: &[Vec<u8>], n: usize) -> Vec<Vec<u8>> {
        let known: Vec<(u8, &[u8])> = (0..).zip(data.iter().map(Vec::as_slice)).collect();
        (0..n).map(|place| compute_symbol(&known, place as u8)).collect()
    }

    /// The symbols that zfec 1.6.0 computes from the same data.
    #[test]
    fn symbols_equal_those_of_zfec() {
        let data = [vec![1, 2, 3, 250], vec![10, 20, 30, 40], vec![255, 0, 128, 7]];
        let expected = [[103, 190, 198, 16], [235, 189, 203, 7], [80, 46, 239, 205]];
        assert_eq!(code(&data, 6)[3..], expected);
        let data =
            |k: usize| (0..k).map(|i| vec![(i * 37 + 5) as u8, (i * 37 + 16) as u8]).collect::<Vec<_>>();
        assert_eq!(code(&data(10), 14)[10..], [[240, 44], [233, 41], [149, 204], [214, 145]]);
        assert_eq!(code(&data(5), 7)[5..], [[35, 43], [186, 157]]);
    }

    proptest! {
        /// Any k of n symbols are enough.
        #[test]
        fn any_k_symbols_restore_all(
            data in (1usize..20, 1usize..40).prop_flat_map(|(k, octets)| proptest::collection::vec(proptest::collection::vec(any::<u8>(), octets), k)),
            more in 0usize..20,
            order in Just((0..40_usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let (k, n) = (data.len(), data.len() + more);
            let all = code(&data, n);
            let kept: Vec<(u8, &[u8])> = order.into_iter().filter(|at| *at < n).take(k).map(|at| (at as u8, &all[at][..])).collect();
            for (place, octets) in all.iter().enumerate() {
                prop_assert_eq!(&compute_symbol(&kept, place as u8), octets);
            }
        }
    }

    #[test]
    fn every_element_has_its_inverse() {
        for a in 1..=255 {
            assert_eq!(product(a, quotient(1, a)), 1, "{a}");
        }
    }
}
