//! Type, length, value, padding: the common format of chunks, parameters and error causes. RFC 9260 sections
//! 3.2, 3.2.1 and 3.3.10.

use bytes::{Buf, BufMut, Bytes};

use crate::ParseError;

/// Length in octets of an item's header: type and length or, for a chunk, type, flags and length.
pub(super) const HEADER_LENGTH: usize = 4;

/// Returns whether `octets` start with a complete item: a chunk, a parameter or a cause. RFC 9260 section 6.10.
pub(super) fn is_whole(octets: &[u8]) -> bool {
    let length = |head: &[u8; HEADER_LENGTH]| usize::from(u16::from_be_bytes([head[2], head[3]]));
    octets.first_chunk().is_some_and(|head| (HEADER_LENGTH..=octets.len()).contains(&length(head)))
}

/// Removes one item from the front of `octets`; returns its first 16 bits and its value. The padding of the last
/// item may be missing, because the enclosing length does not include it.
pub(super) fn take(octets: &mut Bytes) -> Result<(u16, Bytes), ParseError> {
    let head = octets.try_get_u16()?;
    let length = usize::from(octets.try_get_u16()?);
    let value_length = length.checked_sub(HEADER_LENGTH).ok_or(ParseError::Length)?;
    if octets.len() < value_length {
        return Err(ParseError::Truncated);
    }
    let value = octets.split_to(value_length);
    octets.advance(padding(value_length).min(octets.len()));
    Ok((head, value))
}

/// Removes and returns every item of a list.
pub(super) fn take_all<T>(
    mut octets: Bytes,
    parse: impl Fn(u16, Bytes) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let mut items = Vec::new();
    while octets.has_remaining() {
        let (head, value) = take(&mut octets)?;
        items.push(parse(head, value)?);
    }
    Ok(items)
}

/// Appends one item without its padding, because an enclosing length does not include the padding of its last
/// item.
pub(super) fn put(out: &mut Vec<u8>, head: u16, value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_u16(head);
    out.put_u16(0);
    value(out);
    let length = u16::try_from(out.len() - start).expect("an item fits into an IP packet");
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Pads the octets appended since the offset `start` to a multiple of four.
pub(super) fn pad(out: &mut Vec<u8>, start: usize) {
    out.put_bytes(0, padding(out.len() - start));
}

/// Appends a list of items, with padding between them but not after the last one.
pub(super) fn put_all<T>(out: &mut Vec<u8>, items: &[T], emit: impl Fn(&T, &mut Vec<u8>)) {
    let start = out.len();
    for item in items {
        pad(out, start);
        emit(item, out);
    }
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(4) - length
}
