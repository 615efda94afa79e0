//! Serialises a transport as the text that the user wrote. Reading it requires the same stacks.

use hol_stack::TransportSpec;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

/// Writes a transport as text.
pub(crate) fn serialize<S: Serializer>(spec: &TransportSpec, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(spec)
}

/// Reads a transport from text.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TransportSpec, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}
