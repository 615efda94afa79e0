//! Queueing disciplines: the key `discipline`, a word or a table.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::codel::CodelSpec;
use crate::dualpi2::DualPi2Spec;
use crate::fq_codel::FairSpec;
use crate::pie::PieSpec;
use crate::red::RedSpec;

/// The names of the disciplines.
const NAMES: [&str; 6] = ["droptail", "red", "codel", "fq_codel", "pie", "dualpi2"];

/// Which packets are dropped when a queue builds up, and which are sent first.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// Drop packets that find the queue full: `"droptail"`.
    #[default]
    DropTail,
    /// Drop some packets while the average queue is long: `{ red = { min = "5p", max = "15p" } }`, or `"red"`
    /// with every default.
    Red(RedSpec),
    /// Drop some packets while the queueing delay remains too long: `{ codel = { target = "5ms" } }`, or `"codel"`.
    Codel(CodelSpec),
    /// CoDel with a queue per flow, served in turns: `{ fq_codel = { quantum = "300B" } }`, or `"fq_codel"`.
    #[serde(rename = "fq_codel")]
    FairCodel(FairSpec),
    /// Drop some arriving packets to keep the delay near a target: `{ pie = { target = "15ms" } }`, or
    /// `"pie"`.
    Pie(PieSpec),
    /// A low-latency queue for scalable flows (L4S) beside a classic one: `{ dualpi2 = { step = "1ms" } }`, or
    /// `"dualpi2"`.
    DualPi2(DualPi2Spec),
}

impl Discipline {
    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match self {
            Self::DropTail => None,
            Self::Red(red) => red.problem(),
            Self::Codel(codel) => codel.problem(),
            Self::FairCodel(fair) => fair.problem(),
            Self::Pie(pie) => pie.problem(),
            Self::DualPi2(dual) => dual.problem(),
        }
    }

    /// Returns whether packets of endpoints that support ECN may be marked. RFC 3168.
    pub fn marks(&self) -> bool {
        match self {
            Self::DropTail => false,
            Self::Red(red) => red.ecn,
            Self::Codel(codel) => codel.ecn || codel.ce_threshold.is_some(),
            Self::FairCodel(fair) => fair.ecn || fair.ce_threshold.is_some(),
            Self::Pie(pie) => pie.ecn,
            Self::DualPi2(_) => true,
        }
    }
}

impl JsonSchema for Discipline {
    fn schema_name() -> Cow<'static, str> {
        "Discipline".into()
    }

    fn json_schema(of: &mut SchemaGenerator) -> Schema {
        let (red, codel) = (of.subschema_for::<RedSpec>(), of.subschema_for::<CodelSpec>());
        let (fair, pie) = (of.subschema_for::<FairSpec>(), of.subschema_for::<PieSpec>());
        let dual = of.subschema_for::<DualPi2Spec>();
        json_schema!({ "anyOf": [
            { "enum": NAMES },
            {
                "type": "object",
                "properties": { "red": red, "codel": codel, "fq_codel": fair, "pie": pie, "dualpi2": dual },
                "additionalProperties": false,
                "minProperties": 1,
                "maxProperties": 1,
            },
        ] })
    }
}

impl<'de> Deserialize<'de> for Discipline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase", deny_unknown_fields)]
        enum Table {
            Red(RedSpec),
            Codel(CodelSpec),
            #[serde(rename = "fq_codel")]
            FairCodel(FairSpec),
            Pie(PieSpec),
            DualPi2(DualPi2Spec),
        }
        struct WordOrTable;
        impl<'de> Visitor<'de> for WordOrTable {
            type Value = Discipline;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "\"droptail\", \"red\", \"codel\", \"fq_codel\", \"pie\", \"dualpi2\", or a table as { red = { min = \"5p\", max = \"15p\" } }",
                )
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Discipline, E> {
                match word {
                    "droptail" => Ok(Discipline::DropTail),
                    "red" => Ok(Discipline::Red(RedSpec::default())),
                    "codel" => Ok(Discipline::Codel(CodelSpec::default())),
                    "fq_codel" => Ok(Discipline::FairCodel(FairSpec::default())),
                    "pie" => Ok(Discipline::Pie(PieSpec::default())),
                    "dualpi2" => Ok(Discipline::DualPi2(DualPi2Spec::default())),
                    _ => Err(E::unknown_variant(word, &NAMES)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Discipline, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(map)).map(|table| match table {
                    Table::Red(spec) => Discipline::Red(spec),
                    Table::Codel(spec) => Discipline::Codel(spec),
                    Table::FairCodel(spec) => Discipline::FairCodel(spec),
                    Table::Pie(spec) => Discipline::Pie(spec),
                    Table::DualPi2(spec) => Discipline::DualPi2(spec),
                })
            }
        }
        deserializer.deserialize_any(WordOrTable)
    }
}

#[cfg(test)]
mod tests {
    use hol_base::{ByteCount, Duration};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Link {
        discipline: Discipline,
    }

    #[test]
    fn words_and_tables_are_read_and_written() {
        let codel = CodelSpec { target: Duration::from_millis(15), ..CodelSpec::default() };
        let pie = PieSpec { alpha: 4, ..PieSpec::default() };
        let dual = DualPi2Spec { coupling: 1, ..DualPi2Spec::default() };
        let fair = FairSpec { quantum: ByteCount(300), ..FairSpec::default() };
        for (text, discipline) in [
            ("discipline = 'droptail'", Discipline::DropTail),
            ("discipline = 'red'", Discipline::Red(RedSpec::default())),
            ("discipline = 'codel'", Discipline::Codel(CodelSpec::default())),
            ("discipline = { codel = { target = '15ms' } }", Discipline::Codel(codel)),
            ("discipline = { fq_codel = { quantum = '300B' } }", Discipline::FairCodel(fair)),
            ("discipline = 'pie'", Discipline::Pie(PieSpec::default())),
            ("discipline = { pie = { alpha = 4 } }", Discipline::Pie(pie)),
            ("discipline = 'dualpi2'", Discipline::DualPi2(DualPi2Spec::default())),
            ("discipline = { dualpi2 = { coupling = 1 } }", Discipline::DualPi2(dual)),
        ] {
            let link: Link = toml::from_str(text).unwrap();
            assert_eq!(link.discipline, discipline);
            assert_eq!(toml::from_str::<Link>(&toml::to_string(&link).unwrap()).unwrap(), link);
        }
    }

    #[test]
    fn unknown_disciplines_are_refused_with_the_known_ones() {
        for text in
            ["discipline = 'fqcodel'", "discipline = { cake = {} }", "discipline = { codel = { limit = 3 } }"]
        {
            let problem = toml::from_str::<Link>(text).unwrap_err().to_string();
            assert!(problem.contains("fq_codel") || problem.contains("target"), "{problem}");
        }
    }
}
