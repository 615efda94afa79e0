//! Answers of PCP. RFC 6887 section 7.2.

use bytes::BufMut;

use crate::request::{HEADER_LENGTH, MAX_MESSAGE, VERSION};
use crate::{Operation, ResultCode};

/// The bit that is set in the opcode of an answer.
const ANSWER_BIT: u8 = 0x80;

/// Returns the answer that grants an operation, with the lifetime in seconds. `epoch` is the time since the gateway's
/// state was last lost, in seconds.
pub fn success_response(operation: &Operation, lifetime: u32, epoch: u32) -> Vec<u8> {
    let mut out = header(operation.code(), 0, lifetime, epoch);
    operation.put(&mut out);
    out
}

/// Returns the answer that refuses a request. It contains as much of the request as fits into a message.
pub fn error_response(request: &[u8], refusal: ResultCode, epoch: u32) -> Vec<u8> {
    let operation = request.get(1).copied().unwrap_or_default();
    let mut out = header(operation, refusal.code(), refusal.lifetime(), epoch);
    let rest = request.get(HEADER_LENGTH..).unwrap_or_default();
    out.put_slice(&rest[..rest.len().min(MAX_MESSAGE - HEADER_LENGTH)]);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn header(operation: u8, result: u8, lifetime: u32, epoch: u32) -> Vec<u8> {
    let mut out = vec![VERSION, operation | ANSWER_BIT, 0, result];
    out.put_u32(lifetime);
    out.put_u32(epoch);
    out.put_bytes(0, 12);
    out
}
