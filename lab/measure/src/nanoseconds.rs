//! A time as a whole number in files, where the name of the field has its unit.

use hol_base::Duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// As nanoseconds.
pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    time.as_nanos().serialize(to)
}

/// From nanoseconds.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_nanos)
}

/// The same of a time that may be absent.
pub mod if_any {
    use hol_base::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// As nanoseconds, or nothing.
    pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(Duration::as_nanos).serialize(to)
    }

    /// From nanoseconds, or nothing.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_nanos))
    }
}
