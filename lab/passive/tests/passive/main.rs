//! Records from packets: built ones, those of real kernels, and octets from nowhere.

mod arbitrary;
mod captures;
mod mptcp;
mod path;
mod sctp;
mod seen;
mod seen_path;
mod tcp;
mod udp;
