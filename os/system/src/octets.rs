//! Encodes and parses structures: ancillary data, and numbers in them.

use std::mem::size_of;

use libc::c_int;

/// Length in octets of the header of an item of ancillary data: length, level, type.
const ITEM_HEADER: usize = size_of::<libc::cmsghdr>();

/// Appends an item to ancillary data.
pub fn push_item(control: &mut Vec<u8>, level: c_int, kind: c_int, value: &[u8]) {
    control.extend((ITEM_HEADER + value.len()).to_ne_bytes());
    control.extend(level.to_ne_bytes());
    control.extend(kind.to_ne_bytes());
    control.extend(value);
    control.resize(control.len().next_multiple_of(size_of::<usize>()), 0);
}

/// Returns the items of ancillary data (control messages), each as level, type and value.
pub fn items(mut control: &[u8]) -> impl Iterator<Item = (c_int, c_int, &[u8])> {
    std::iter::from_fn(move || {
        let (length, rest) = control.split_first_chunk()?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let value = control.get(ITEM_HEADER..length)?;
        control = control.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        Some((c_int::from_ne_bytes(*level), c_int::from_ne_bytes(*kind), value))
    })
}

/// Returns the 16-bit number in host order at an offset of a structure; `None` beyond the end of the structure.
pub fn u16_at(structure: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*structure.get(offset..)?.first_chunk()?))
}

/// Returns the 32-bit number in host order at an offset of a structure; `None` beyond the end of the structure.
pub fn u32_at(structure: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*structure.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancillary_data_reads_back_as_written() {
        let mut control = Vec::new();
        push_item(&mut control, 132, 2, &[7; 16]);
        push_item(&mut control, 132, 5, &[9; 6]);
        assert_eq!(control.len(), 32 + 24);
        let read: Vec<_> = items(&control).collect();
        assert_eq!(read, [(132, 2, &[7u8; 16][..]), (132, 5, &[9u8; 6][..])]);
    }

    #[test]
    fn broken_ancillary_data_ends_the_items() {
        assert_eq!(items(&[0; 40]).count(), 0);
        assert_eq!(items(&[255; 40]).count(), 0);
        assert_eq!(items(&[1, 2, 3]).count(), 0);
    }
}
