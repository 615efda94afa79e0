//! Reads one table of a stack file: lines such as `rto_min = "200ms"  # TCP_RTO_MIN` below `[tcp]`.
//!
//! An endpoint's crate reads its own behaviour with it and so needs no TOML library. Values are numbers, booleans and strings without
//! escapes; a test of `hol-stack` compares the result with that of a TOML library for every stack file.

use serde::de::value::{Error, MapDeserializer};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Reads the table called `name` of the text of a stack file.
pub fn read_table<'t, T: Deserialize<'t>>(text: &'t str, name: &str) -> Result<T, Error> {
    let is_header =
        |line: &&str| line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) == Some(name);
    let lines = text.lines().map(str::trim).skip_while(|line| !is_header(line)).skip(1);
    let entries = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    let pairs = entries.filter_map(|line| line.split_once('='));
    T::deserialize(MapDeserializer::new(
        pairs.map(|(key, value)| (key.trim_end(), Value(value.trim_start()))),
    ))
}

/// A value, and perhaps a comment behind it.
struct Value<'t>(&'t str);

impl<'t> Value<'t> {
    /// The text of a string.
    fn quoted(&self) -> Option<&'t str> {
        self.0.strip_prefix('"')?.split('"').next()
    }

    /// The text of anything else.
    fn word(&self) -> &'t str {
        self.0.split('#').next().unwrap_or_default().trim_end()
    }
}

impl<'t> IntoDeserializer<'t, Error> for Value<'t> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Some(text) = self.quoted() {
            return visitor.visit_borrowed_str(text);
        }
        let word = self.word();
        match (word.parse::<bool>(), word.parse::<i64>(), word.parse::<f64>()) {
            (Ok(boolean), ..) => visitor.visit_bool(boolean),
            (_, Ok(integer), _) => visitor.visit_i64(integer),
            (.., Ok(float)) => visitor.visit_f64(float),
            _ => Err(serde::de::Error::custom(format_args!("{word:?} is no value"))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = self.quoted().unwrap_or_else(|| self.word());
        text.into_deserializer().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "lowercase")]
    struct Table {
        mode: Mode,
        name: String,
        number: u16,
        share: f32,
        on: bool,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Slow,
    }

    const TEXT: &str = r#"
        # A stack = "of the tests".
        [other]
        number = 8

        [mine]
        mode = "slow"   # a word
        name = "a # b"  # no comment within
        number = 7
        share = 1.5     # a = b
        on = true
    "#;

    #[test]
    fn a_table_ends_where_the_next_begins() {
        let table = Table { mode: Mode::Slow, name: "a # b".to_owned(), number: 7, share: 1.5, on: true };
        assert_eq!(read_table::<Table>(TEXT, "mine"), Ok(table));
        assert!(read_table::<Table>(TEXT, "other").is_err(), "keys are missing");
        assert!(read_table::<Table>(&TEXT.replace("true", "true\nmore = 1"), "mine").is_err(), "unknown key");
        assert!(read_table::<Table>(&TEXT.replace("true", "yes"), "mine").is_err(), "no value");
    }
}
