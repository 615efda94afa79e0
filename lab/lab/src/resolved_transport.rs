//! Writes a transport with every option of its stack, so that a result contains all settings of its
//! transport.

use hol_stack::TransportSpec;
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

#[derive(Serialize, Deserialize)]
/// A transport with every option, as results store it.
pub struct ResolvedTransport {
    spec: String,
    stack: String,
    behaviour: toml::Table,
}

impl ResolvedTransport {
    /// Returns a transport in the form in which results store it.
    pub fn of(spec: &TransportSpec) -> Self {
        let (stack, behaviour) = (spec.stack().to_owned(), spec.option_values().clone());
        Self { spec: spec.to_string(), stack, behaviour }
    }
}

/// Serializes a transport with every option.
pub fn serialize<S: Serializer>(spec: &TransportSpec, to: S) -> Result<S::Ok, S::Error> {
    ResolvedTransport::of(spec).serialize(to)
}

/// Serializes and deserializes a transport that may be absent.
pub(crate) mod optional {
    use hol_stack::TransportSpec;
    use serde::{Deserializer, Serialize, Serializer};

    /// Serializes a transport with every option, or nothing.
    pub fn serialize<S: Serializer>(spec: &Option<TransportSpec>, to: S) -> Result<S::Ok, S::Error> {
        spec.as_ref().map(super::ResolvedTransport::of).serialize(to)
    }

    /// Deserializes a transport, if there is one.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TransportSpec>, D::Error> {
        super::deserialize(from).map(Some)
    }
}

/// Deserializes a transport, either as the user wrote it or as a manifest stores it.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TransportSpec, D::Error> {
    struct TextOrTable;
    impl<'de> Visitor<'de> for TextOrTable {
        type Value = TransportSpec;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a transport such as \"tcp:sack=false\"")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<TransportSpec, E> {
            text.parse().map_err(E::custom)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TransportSpec, A::Error> {
            self.visit_str(&ResolvedTransport::deserialize(MapAccessDeserializer::new(map))?.spec)
        }
    }
    from.deserialize_any(TextOrTable)
}
