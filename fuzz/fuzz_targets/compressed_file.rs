//! Decompresses arbitrary octets, which begin as a file of gzip, of zstd, or of neither: never more than the limit.
#![no_main]

use std::io::{Cursor, Read};

use hol_lab::decompress;
use libfuzzer_sys::fuzz_target;

const LIMIT: u64 = 1 << 20;

fuzz_target!(|input: (u8, &[u8])| {
    let (format, octets) = input;
    let magic: &[u8] = match format % 3 {
        0 => b"\x1f\x8b\x08",
        1 => b"\x28\xb5\x2f\xfd",
        _ => b"",
    };
    let file = [magic, octets].concat();
    let plain = file.len() as u64;
    let mut content = Vec::new();
    if decompress(Cursor::new(file), LIMIT).and_then(|mut input| input.read_to_end(&mut content)).is_ok() {
        assert!(content.len() as u64 <= LIMIT.max(plain));
    }
});
