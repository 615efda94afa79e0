//! Tests packets of every kind: encoding, parsing, and Wireshark's dissection.

mod arbitrary;
mod round_trip;
mod tshark;
