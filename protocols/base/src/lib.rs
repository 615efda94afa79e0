#![doc = include_str!("../README.md")]

mod digest;
mod percent;
mod random;
mod serial;
mod spelling;
mod time;
mod units;
mod wording;

pub use digest::{Digest, Digester};
pub use percent::percent_encoded;
pub use random::{Rng, Seed};
pub use spelling::nearest_word;
pub use time::{Duration, Time};
pub use units::{BitRate, ByteCount, Frequency, ParseUnitError, QueueLimit, Ratio, deserialize_text};
pub use wording::rewrite_parse_error;
