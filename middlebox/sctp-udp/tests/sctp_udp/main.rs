//! Associations in UDP datagrams. RFC 6951.

mod hostile;
mod port;
mod sessions;
mod socket;
mod stranger;
