//! Policing: packets beyond a rate are dropped without queueing. A token bucket (RFC 2697, with one rate and
//! one burst): tokens accumulate at the rate, up to the burst; a packet takes one token per octet, or is
//! dropped.

use std::borrow::Cow;
use std::fmt;

use hol_base::{BitRate, ByteCount, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Policing at the end of the link: `"none"`, or `{ rate = "1Mbit", burst = "10kB" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoliceSpec(pub Option<TokenBucket>);

/// A policer, which counts IP packets without link-layer headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenBucket {
    /// Fill rate of the token bucket.
    pub rate: BitRate,
    /// Size of the token bucket, full at the start.
    pub burst: ByteCount,
}

impl TokenBucket {
    /// Number of parts of a token: bits per octet times nanoseconds per second. With this number each
    /// nanosecond adds a whole number of parts.
    pub const PARTS_PER_TOKEN: u64 = 8 * 1_000_000_000;
    /// Maximum size of a bucket in octets, whose parts fit into 63 bits.
    pub const MAX_OCTETS: u64 = 1_000_000_000;

    /// Returns the capacity of the bucket in parts of tokens.
    pub const fn capacity(self) -> u64 {
        self.burst.0 * Self::PARTS_PER_TOKEN
    }

    /// Returns the parts added per nanosecond, limited to the capacity.
    pub fn parts_per_ns(self) -> u64 {
        self.rate.bits_per_second().min(self.capacity())
    }

    /// Returns the time in which an empty bucket fills, in nanoseconds.
    pub fn fill_time(self) -> u64 {
        self.capacity().div_ceil(self.parts_per_ns())
    }
}

impl JsonSchema for PoliceSpec {
    fn schema_name() -> Cow<'static, str> {
        "PoliceSpec".into()
    }

    fn json_schema(of: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "none" }, of.subschema_for::<TokenBucket>()] })
    }
}

impl Serialize for PoliceSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(bucket) => bucket.serialize(to),
            None => to.serialize_str("none"),
        }
    }
}

impl<'de> Deserialize<'de> for PoliceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrTable;
        impl<'de> Visitor<'de> for WordOrTable {
            type Value = PoliceSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"none\", or { rate = \"1Mbit\", burst = \"10kB\" }")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<PoliceSpec, E> {
                if word == "none" {
                    Ok(PoliceSpec(None))
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(word), &self))
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PoliceSpec, A::Error> {
                TokenBucket::deserialize(MapAccessDeserializer::new(map))
                    .map(|bucket| PoliceSpec(Some(bucket)))
            }
        }
        deserializer.deserialize_any(WordOrTable)
    }
}

/// Decides for each packet whether it passes. All numbers are integers, so nothing is rounded.
#[derive(Debug)]
pub(crate) struct Policer {
    bucket: TokenBucket,
    /// Available tokens, in parts.
    tokens: u64,
    /// The time at which `tokens` was computed.
    tokens_at: Time,
}

impl Policer {
    /// Creates a policer whose bucket is full; `None` if `spec` has no bucket.
    pub(crate) fn new(spec: PoliceSpec) -> Option<Self> {
        spec.0.map(|bucket| Self { bucket, tokens: bucket.capacity(), tokens_at: Time::ZERO })
    }

    /// Returns whether there are enough tokens for an IP packet of `length` octets, and removes these tokens.
    pub(crate) fn admits(&mut self, now: Time, length: u64) -> bool {
        let waited = now.since(self.tokens_at).as_nanos().min(self.bucket.fill_time());
        // Limiting the time and the sum by the capacity of the bucket keeps all values within 64 bits.
        let gained = (waited * self.bucket.parts_per_ns()).min(self.bucket.capacity());
        self.tokens = (self.tokens + gained).min(self.bucket.capacity());
        self.tokens_at = now;
        let left = self.tokens.checked_sub(length * TokenBucket::PARTS_PER_TOKEN);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn police(rate: &str, burst: u64) -> Policer {
        let bucket = TokenBucket { rate: rate.parse().unwrap(), burst: ByteCount(burst) };
        Policer::new(PoliceSpec(Some(bucket))).unwrap()
    }

    #[test]
    fn burst_passes_and_its_tokens_return_at_the_rate() {
        let mut police = police("1Mbit", 10_000);
        let passed =
            |police: &mut Policer, ms| (0..20).filter(|_| police.admits(Time::from_millis(ms), 1000)).count();
        assert_eq!(passed(&mut police, 0), 10);
        // 1000 octets are 8 ms.
        assert_eq!(passed(&mut police, 8), 1);
        assert_eq!(passed(&mut police, 31), 2);
        assert_eq!(passed(&mut police, 32), 1);
        assert_eq!(passed(&mut police, 1_000_000), 10, "more than the burst is never there");
    }

    #[test]
    fn dropped_packet_takes_no_tokens() {
        let mut police = police("1Mbit", 1500);
        assert!(police.admits(Time::ZERO, 1000));
        assert!(!police.admits(Time::ZERO, 501));
        assert!(police.admits(Time::ZERO, 500));
    }

    #[test]
    fn the_largest_bucket_and_the_fastest_rate_fit_into_64_bits() {
        let mut police = police("1000Gbit", TokenBucket::MAX_OCTETS);
        assert!(police.admits(Time::ZERO, TokenBucket::MAX_OCTETS));
        assert!(!police.admits(Time::from_nanos(1), 126));
        assert!(police.admits(Time::from_nanos(1), 125));
        assert!(police.admits(Time::from_nanos(u64::MAX), TokenBucket::MAX_OCTETS));
        let rate = BitRate::from_bits_per_second(u64::MAX).unwrap();
        for burst in [1, TokenBucket::MAX_OCTETS] {
            let bucket = TokenBucket { rate, burst: ByteCount(burst) };
            let mut police = Policer::new(PoliceSpec(Some(bucket))).unwrap();
            assert!(
                (0..9).all(|at| police.admits(Time::from_nanos(at), burst)),
                "full after each nanosecond"
            );
        }
    }

    #[test]
    fn word_and_table_are_read_and_written() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Link {
            police: PoliceSpec,
        }
        let bucket = TokenBucket { rate: "1Mbit".parse().unwrap(), burst: ByteCount(10_000) };
        for (text, bucket) in
            [("police = 'none'", None), ("police = { rate = '1Mbit', burst = '10kB' }", Some(bucket))]
        {
            let link: Link = toml::from_str(text).unwrap();
            assert_eq!(link.police, PoliceSpec(bucket));
            assert_eq!(toml::from_str::<Link>(&toml::to_string(&link).unwrap()).unwrap(), link);
        }
        let problem = toml::from_str::<Link>("police = 'off'").unwrap_err().to_string();
        assert!(problem.contains("burst = \"10kB\""), "{problem}");
    }
}
