#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! An MP3 frame is not self-contained: its data may be in earlier frames. [`mpa`] (RFC 2250) sends frames
//! unchanged; [`AduConverter`] (RFC 3119) converts them to self-contained units, which may be interleaved and which
//! [`FrameRestorer`] converts back. [`parity`] restores lost packets with any number of parity packets; [`ulpfec`]
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
mod test_streams;
pub mod ulpfec;

pub use adu::AduConverter;
pub use descriptor::{AduFragment, fragments, split};
pub use header::Header;
pub use interleave::{Deinterleaver, Interleaver, InterleavingNumber, odd_numbers_first};
pub use mp3::FrameHeader;
pub use restore::FrameRestorer;
pub use stream::{BIT_RATES, SAMPLES_PER_FRAME, SAMPLING_RATE, Stream};

/// A packet or frame (RTP, MP3 ADU, FEC) that could not be parsed; contains the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub &'static str);
