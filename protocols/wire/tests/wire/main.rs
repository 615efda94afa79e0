//! Packets of every shape: to octets and back, and through Wireshark.

mod arbitrary;
mod round_trip;
mod tshark;
