//! Reads the kernel's type information (BTF). Documentation/bpf/btf.rst

const MAGIC: u16 = 0xeb9f;
const FUNC: u32 = 12;

/// Returns the BTF ID of the kernel function called `name`; `None` if there is none, or if the data is malformed.
pub(super) fn function_id(list: &[u8], name: &str) -> Option<u32> {
    let word = |at: usize| Some(u32::from_le_bytes(*list.get(at..)?.first_chunk()?));
    if u16::from_le_bytes(*list.first_chunk()?) != MAGIC {
        return None;
    }
    let [head, types, length, strings] = [4, 8, 12, 16].map(|at| word(at).map(|word| word as usize));
    let (head, length) = (head?, length?);
    let (mut at, strings) = (head.checked_add(types?)?, head.checked_add(strings?)?);
    let end = at.checked_add(length)?;
    // The numbers of types start at 1: 0 is void, and not in the list.
    let mut number = 1;
    while at < end {
        let (own, info) = (word(at)? as usize, word(at + 4)?);
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        if kind == FUNC && is_called(list.get(strings.checked_add(own)?..)?, name) {
            return Some(number);
        }
        at += 12 + octets_after_header(kind, count)?;
        number += 1;
    }
    None
}

fn is_called(string: &[u8], name: &str) -> bool {
    string.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
}

/// Returns the number of octets that follow the first three words in the description of a type; `None` if `kind`
/// is unknown.
const fn octets_after_header(kind: u32, count: usize) -> Option<usize> {
    match kind {
        // PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG
        2 | 7..=12 | 16 | 18 => Some(0),
        // INT, VAR, DECL_TAG
        1 | 14 | 17 => Some(4),
        // ARRAY
        3 => Some(12),
        // STRUCT, UNION, DATASEC, ENUM64
        4 | 5 | 15 | 19 => Some(12 * count),
        // ENUM, FUNC_PROTO
        6 | 13 => Some(8 * count),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes types from the offset of each name, the kind, and the number of words that follow.
    fn list(types: &[(u32, u32, usize)], strings: &[u8]) -> Vec<u8> {
        let body: Vec<u32> = types
            .iter()
            .flat_map(|(name, info, words)| {
                [*name, *info, 0].into_iter().chain(std::iter::repeat_n(0, *words))
            })
            .collect();
        let length = body.len() as u32 * 4;
        let head = [u32::from(MAGIC) | 1 << 16, 24, 0, length, length, strings.len() as u32];
        let words = head.iter().chain(&body).flat_map(|word| word.to_le_bytes());
        words.chain(strings.iter().copied()).collect()
    }

    #[test]
    fn a_function_is_found_behind_types_of_any_length() {
        let strings = b"\0update\0update_it\0";
        let types = [(1, 1 << 24, 1), (1, 4 << 24 | 2, 6), (8, FUNC << 24, 0), (1, FUNC << 24, 0)];
        let list = list(&types, strings);
        assert_eq!(function_id(&list, "update"), Some(4));
        assert_eq!(function_id(&list, "update_it"), Some(3));
        assert_eq!(function_id(&list, "up"), None);
    }

    #[test]
    fn malformed_type_information_has_no_functions() {
        let whole = list(&[(1, 31 << 24, 0)], b"\0a\0");
        assert_eq!(function_id(&whole, "a"), None);
        assert!((0..whole.len()).all(|length| function_id(&whole[..length], "a").is_none()));
    }
}
