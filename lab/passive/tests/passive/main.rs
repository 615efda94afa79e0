//! Records from packets: generated ones, those of real kernels, and arbitrary octets.

mod arbitrary;
mod capture_builder;
mod captures;
mod misread_captures;
mod mptcp;
mod path;
mod sctp;
mod tcp;
mod udp;
