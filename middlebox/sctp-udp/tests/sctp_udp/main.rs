//! Associations in UDP datagrams. RFC 6951.

mod port;
mod sessions;
mod socket;
mod stranger;
