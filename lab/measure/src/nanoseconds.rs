//! Writes and reads times as integers in nanoseconds; the name of the field in the file ends with the unit.

use hol_base::Duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Serializes a time as nanoseconds.
pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    time.as_nanos().serialize(to)
}

/// Deserializes a time from nanoseconds.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_nanos)
}

/// Serializes and deserializes an optional time.
pub mod optional {
    use hol_base::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Serializes an optional time as nanoseconds, or null.
    pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(Duration::as_nanos).serialize(to)
    }

    /// Deserializes an optional time from nanoseconds, or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_nanos))
    }
}
