//! RTP packets of MP3 audio (MPEG-1 layer III), and codes against their loss: pure functions over octets.
//!
//! A frame of MP3 is no unit of its own: what it sounds like may stand in the frames before it. [`mpa`] (RFC 2250) sends
//! frames as they are; [`Adus`] (RFC 3119) makes units of them that do not need each other, which may be interleaved and
//! which [`Frames`] turns back. [`parity`] restores packets that are lost, with any number of others; [`ulpfec`] (RFC 5109) one of a group.
//!
//! Left out: MPEG-2, layers I and II, free bit rates, RTCP.

mod adu;
mod descriptor;
mod erasure;
mod header;
mod interleave;
mod mp3;
pub mod mpa;
pub mod parity;
mod restore;
mod stream;
#[cfg(test)]
mod testing;
pub mod ulpfec;

pub use adu::Adus;
pub use descriptor::{Piece, pieces, split};
pub use header::Header;
pub use interleave::{Deinterleaver, Interleaver, Isn, odd_then_even};
pub use mp3::FrameHeader;
pub use restore::Frames;
pub use stream::{BIT_RATES, SAMPLES, SAMPLING_RATE, Stream};

/// Octets that are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
