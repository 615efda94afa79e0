#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! An MP3 frame is not self-contained: its data may be in earlier frames. [`mpa`] (RFC 2250) sends frames
//! unchanged; [`Adus`] (RFC 3119) converts them to self-contained units, which may be interleaved and which
//! [`Frames`] converts back. [`parity`] restores lost packets with any number of parity packets; [`ulpfec`]
//! (RFC 5109) restores one per group.

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
pub use interleave::{Deinterleaver, Interleaver, InterleavingNumber, odd_then_even};
pub use mp3::FrameHeader;
pub use restore::Frames;
pub use stream::{BIT_RATES, SAMPLES, SAMPLING_RATE, Stream};

/// A packet or frame (RTP, MP3 ADU, FEC) that could not be parsed; contains the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
