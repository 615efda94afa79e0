//! The transports of an experiment: each with a label, and with the workload settings that differ over it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use hol_stack::TransportSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::axes::Assignment;
use crate::error::InputError;
use crate::source::Source;

/// A transport to compare: `"sctp:streams=8"`, or
/// `{ spec = "sctp:streams=8", label = "SCTP-8", workload = { sources = 8 } }`. For this transport the keys
/// of `workload` override those of `[workload]`, for example to have a source for each stream.
#[derive(Debug, Clone)]
pub(crate) struct NamedTransport {
    pub(crate) spec: TransportSpec,
    pub(crate) label: String,
    /// Whether the transport overrides settings of the workload.
    pub(crate) has_own_workload: bool,
}

/// Returns the experiment with the workload settings of the transport at this index. Returns an error if such a setting
/// is also a swept key.
pub(crate) fn merge_workload<'s>(
    table: &DeTable<'s>,
    transport: usize,
    swept: &[Assignment<'_>],
    source: &Source,
) -> Result<Option<DeTable<'s>>, InputError> {
    let Some((own, keys)) = own_workload(table, transport) else { return Ok(None) };
    let is_swept = |key: &str| swept.iter().any(|set| set.key.strip_prefix("workload.") == Some(key));
    if let Some((key, _)) = keys.iter().find(|(key, _)| is_swept(key.get_ref())) {
        let problem =
            format!("workload.{0} is swept and also set here; remove it here or from [sweep]", key.get_ref());
        return Err(source.error(&key.span(), problem));
    }
    let mut table = table.clone();
    let empty = Spanned::new(own.span(), DeValue::Table(DeTable::new()));
    let workload = table.entry(Spanned::new(own.span(), "workload".into())).or_insert(empty);
    if let DeValue::Table(workload) = workload.as_mut() {
        workload.extend(keys.clone());
    }
    Ok(Some(table))
}

/// Returns the workload settings of the transport at this index: as a value with its position in the file, and as the
/// table in this value. Returns `None` if the transport has no workload settings.
fn own_workload<'t, 's>(
    table: &'t DeTable<'s>,
    transport: usize,
) -> Option<(&'t Spanned<DeValue<'s>>, &'t DeTable<'s>)> {
    let DeValue::Array(transports) = table.get("transports")?.get_ref() else { return None };
    let DeValue::Table(named) = transports.get(transport)?.get_ref() else { return None };
    let own = named.get("workload")?;
    let DeValue::Table(keys) = own.get_ref() else { return None };
    Some((own, keys))
}

impl JsonSchema for NamedTransport {
    fn schema_name() -> Cow<'static, str> {
        "Transport".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        const SPEC_DESCRIPTION: &str =
            "Transport with options, such as \"sctp:streams=8\"; `hol list` shows all.";
        json_schema!({ "description": "A transport with its own label or workload settings.", "anyOf": [
            { "type": "string", "description": SPEC_DESCRIPTION },
            {
                "type": "object",
                "properties": {
                    "spec": { "type": "string", "description": SPEC_DESCRIPTION },
                    "label": { "type": "string", "description": "Label in tables and figures. Default: `spec`." },
                    "workload": { "type": "object", "description": "Keys of `[workload]` for this transport." },
                },
                "required": ["spec"],
                "additionalProperties": false,
            },
        ] })
    }
}

impl<'de> Deserialize<'de> for NamedTransport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            spec: String,
            label: Option<String>,
            /// Settings that override `[workload]`. They are checked later, together with that table.
            workload: Option<BTreeMap<String, IgnoredAny>>,
        }
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = NamedTransport;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a transport such as \"sctp:streams=8\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<NamedTransport, E> {
                let spec: TransportSpec = text.parse().map_err(E::custom)?;
                Ok(NamedTransport { label: spec.to_string(), spec, has_own_workload: false })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NamedTransport, A::Error> {
                let Table { spec, label, workload } = Table::deserialize(MapAccessDeserializer::new(map))?;
                let named = self.visit_str::<A::Error>(&spec)?;
                let label = label.unwrap_or(named.label);
                Ok(NamedTransport { label, has_own_workload: workload.is_some(), ..named })
            }
        }
        deserializer.deserialize_any(TextOrTable)
    }
}
