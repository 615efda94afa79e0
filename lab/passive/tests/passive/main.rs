//! Records from packets: generated ones, those of real kernels, and arbitrary octets.

mod arbitrary;
mod captures;
mod mptcp;
mod path;
mod sctp;
mod seen;
mod seen_path;
mod tcp;
mod udp;
