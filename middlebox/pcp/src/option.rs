//! Options of a request. RFC 6887 sections 7.3 and 13.

use std::net::IpAddr;

use bytes::{Buf, BufMut};

use crate::{ResultCode, address};

/// The lowest code of optional options; options with lower codes are mandatory to process. RFC 6887 section 7.3.
const FIRST_OPTIONAL: u8 = 128;
const PREFER_FAILURE: u8 = 2;
const FILTER_OPTION: u8 = 3;

/// Remote hosts that may use a mapping: the option FILTER. RFC 6887 section 13.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Length of the address prefix in bits.
    pub prefix_length: u8,
    /// Address of the remote hosts.
    pub address: IpAddr,
    /// Port of the remote hosts; 0 means any.
    pub port: u16,
}

/// The options of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Whether the request has the option PREFER_FAILURE. RFC 6887 section 13.2.
    pub prefer_failure: bool,
    pub filters: Vec<Filter>,
}

impl Options {
    /// Parses the options of a request; unknown optional ones are ignored.
    pub fn parse(mut rest: &[u8], is_map: bool) -> Result<Self, ResultCode> {
        let mut options = Self::default();
        while !rest.is_empty() {
            let (code, value) = parse_next(&mut rest)?;
            match code {
                PREFER_FAILURE if is_map => {
                    if !value.is_empty() || std::mem::replace(&mut options.prefer_failure, true) {
                        return Err(ResultCode::MalformedOption);
                    }
                }
                FILTER_OPTION if is_map => options.filter(value)?,
                // No host may manage mappings of another (THIRD_PARTY).
                0..FIRST_OPTIONAL => return Err(ResultCode::UnsupportedOption),
                FIRST_OPTIONAL.. => {}
            }
        }
        Ok(options)
    }

    /// Adds a filter; a filter with prefix length zero removes all earlier filters.
    fn filter(&mut self, mut value: &[u8]) -> Result<(), ResultCode> {
        if value.len() != Filter::FILTER_LENGTH {
            return Err(ResultCode::MalformedOption);
        }
        value.advance(1);
        let (bits, port) = (value.get_u8(), value.get_u16());
        let mut octets = [0; 16];
        value.copy_to_slice(&mut octets);
        let address = address::parse(octets);
        if bits == 0 {
            self.filters.clear();
            return Ok(());
        }
        let prefix_length = match address {
            IpAddr::V4(_) => bits.checked_sub(96).filter(|bits| *bits <= 32),
            IpAddr::V6(_) => Some(bits).filter(|bits| *bits <= 128),
        };
        let prefix_length = prefix_length.ok_or(ResultCode::MalformedOption)?;
        self.filters.push(Filter { prefix_length, address, port });
        Ok(())
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        if self.prefer_failure {
            out.put_slice(&[PREFER_FAILURE, 0, 0, 0]);
        }
        for Filter { prefix_length, address, port } in &self.filters {
            out.put_slice(&[FILTER_OPTION, 0, 0, Filter::FILTER_LENGTH as u8, 0]);
            out.put_u8(if address.is_ipv4() { 96 + prefix_length } else { *prefix_length });
            out.put_u16(*port);
            address::put(out, *address);
        }
    }
}

impl Filter {
    const FILTER_LENGTH: usize = 20;
}

/// Returns the code and the value of the next option. The option's length does not include the padding to a multiple of
/// four octets.
fn parse_next<'a>(rest: &mut &'a [u8]) -> Result<(u8, &'a [u8]), ResultCode> {
    let ([code, _, high, low], others) = rest.split_first_chunk().ok_or(ResultCode::MalformedOption)?;
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let padded = length.next_multiple_of(4);
    if padded > others.len() {
        return Err(ResultCode::MalformedOption);
    }
    *rest = &others[padded..];
    Ok((*code, &others[..length]))
}
