//! Deserializes a TOML document.
//!
//! The crate `toml` compiles three deserializers for every type: of tables, of dates and of spans. With this project's many types that was
//! a tenth of the program and of its build time, so this is a single deserializer for keys, values and spans.

use std::fmt::{self, Display};
use std::ops::Range;
use std::vec;

use serde::de::{self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The reason why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    message: String,
    span: Option<Range<usize>>,
}

impl ReadError {
    /// Returns the description of the error.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the position of the error, in octets from the beginning of the document.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// Sets the position of an error that has none yet. The error thus has the position of the innermost value.
    fn with_position(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

impl From<toml::de::Error> for ReadError {
    fn from(error: toml::de::Error) -> Self {
        Self { message: error.message().to_owned(), span: error.span() }
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None }
    }
}

/// Parses a whole TOML document.
///
/// # Errors
/// If the text is not TOML, or if its values do not match the type.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let table = DeTable::parse(text)?;
    from_table(table.get_ref())
}

/// Deserializes a value from a parsed table.
pub(crate) fn from_table<'de, T: Deserialize<'de>>(table: &'de DeTable<'de>) -> Result<T, ReadError> {
    T::deserialize(Reader { node: Node::Table(table), span: 0..0 })
}

/// A part of a document from which a type can be read.
#[derive(Clone, Copy)]
enum Node<'de> {
    Value(&'de DeValue<'de>),
    Table(&'de DeTable<'de>),
    /// A key, or the name of an enum's variant.
    Text(&'de str),
    /// The start or the end of a span, in octets, which [`Spanned`] reads.
    Offset(usize),
}

/// A part of a document, and its position.
struct Reader<'de> {
    node: Node<'de>,
    span: Range<usize>,
}

impl<'de> Reader<'de> {
    fn of(value: &'de Spanned<DeValue<'de>>) -> Self {
        let node = match value.get_ref() {
            DeValue::Table(table) => Node::Table(table),
            other => Node::Value(other),
        };
        Self { node, span: value.span() }
    }

    fn entries(table: &'de DeTable<'de>) -> Entries<'de> {
        let entry = |(key, value): (&'de Spanned<_>, &'de Spanned<_>)| {
            (Self { node: Node::Text(AsRef::as_ref(key.get_ref())), span: key.span() }, Self::of(value))
        };
        Entries { rest: table.iter().map(entry).collect::<Vec<_>>().into_iter(), value: None }
    }

    /// Returns the three fields that [`Spanned`] expects: the start and the end of the span, and the value.
    fn spanned(self, fields: &'static [&'static str]) -> Entries<'de> {
        let span = self.span.clone();
        let at = |node| Self { node, span: span.clone() };
        let values = [at(Node::Offset(span.start)), at(Node::Offset(span.end)), self];
        let entries = fields.iter().map(|field| at(Node::Text(field))).zip(values);
        Entries { rest: entries.collect::<Vec<_>>().into_iter(), value: None }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let value = match self.node {
            Node::Table(table) => visitor.visit_map(Self::entries(table)),
            Node::Text(text) => visitor.visit_borrowed_str(text),
            Node::Offset(offset) => visitor.visit_u64(offset as u64),
            Node::Value(value) => match value {
                DeValue::Table(table) => visitor.visit_map(Self::entries(table)),
                DeValue::Array(list) => {
                    visitor.visit_seq(Elements(list.iter().map(Self::of).collect::<Vec<_>>().into_iter()))
                }
                DeValue::String(text) => visitor.visit_borrowed_str(text),
                DeValue::Boolean(is_set) => visitor.visit_bool(*is_set),
                DeValue::Integer(number) => {
                    match i128::from_str_radix(number.as_str(), number.radix()).map(i64::try_from) {
                        Ok(Ok(number)) => visitor.visit_i64(number),
                        _ => match u64::from_str_radix(number.as_str(), number.radix()) {
                            Ok(number) => visitor.visit_u64(number),
                            Err(_) => Err(de::Error::custom(
                                "the number is too large: a whole number has at most 64 bits",
                            )),
                        },
                    }
                }
                DeValue::Float(number) => match number.as_str().parse::<f64>() {
                    Ok(float) if float.is_finite() || number.as_str().contains("inf") || float.is_nan() => {
                        visitor.visit_f64(float)
                    }
                    _ => Err(de::Error::custom("the number is out of range: a float is at most 1.8e308")),
                },
                DeValue::Datetime(_) => {
                    Err(de::Error::custom("a date is not allowed here; put text in quotes"))
                }
            },
        };
        value.map_err(|error| error.with_position(&self.span))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    /// Returns an error for a list in place of a table. Otherwise the values in the list would be assigned to the
    /// keys of the table in order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let span = self.span.clone();
        let entries = match self.node {
            _ if serde_spanned::de::is_spanned(name) => self.spanned(fields),
            Node::Table(table) => Self::entries(table),
            node => {
                return Err(de::Error::invalid_type(unexpected(node), &visitor))
                    .map_err(|e: ReadError| e.with_position(&span));
            }
        };
        visitor.visit_map(entries).map_err(|error| error.with_position(&span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let span = self.span.clone();
        let variant = match self.node {
            Node::Table(table) if table.len() == 1 => {
                let entry = Self::entries(table).rest.next();
                entry.map(|(name, value)| Variant { name, content: Some(value) })
            }
            Node::Text(_) | Node::Value(DeValue::String(_)) => Some(Variant { name: self, content: None }),
            _ => None,
        };
        let value = match variant {
            Some(variant) => visitor.visit_enum(variant),
            None => Err(de::Error::custom("wanted string or table")),
        };
        value.map_err(|error| error.with_position(&span))
    }

    serde::forward_to_deserialize_any! {
        bool u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 char str string seq bytes byte_buf map unit ignored_any unit_struct
        tuple_struct tuple identifier
    }
}

/// Returns the description of a value's type for an error message.
fn unexpected(node: Node<'_>) -> de::Unexpected<'_> {
    match node {
        Node::Text(text) => de::Unexpected::Str(text),
        Node::Offset(offset) => de::Unexpected::Unsigned(offset as u64),
        Node::Table(_) | Node::Value(DeValue::Table(_)) => de::Unexpected::Map,
        Node::Value(DeValue::String(text)) => de::Unexpected::Str(text),
        Node::Value(DeValue::Boolean(is_set)) => de::Unexpected::Bool(*is_set),
        Node::Value(DeValue::Array(_)) => de::Unexpected::Seq,
        Node::Value(DeValue::Datetime(_)) => de::Unexpected::Other("date"),
        Node::Value(DeValue::Integer(number)) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => de::Unexpected::Signed(number),
            Err(_) => de::Unexpected::Other("integer"),
        },
        Node::Value(DeValue::Float(number)) => match number.as_str().parse() {
            Ok(number) => de::Unexpected::Float(number),
            Err(_) => de::Unexpected::Other("float"),
        },
    }
}

/// The entries of a table that have not been deserialized yet.
struct Entries<'de> {
    rest: vec::IntoIter<(Reader<'de>, Reader<'de>)>,
    value: Option<Reader<'de>>,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        let span = key.span.clone();
        seed.deserialize(key).map(Some).map_err(|error| error.with_position(&span))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let value = self.value.take().expect("a value is read after its key");
        let span = value.span.clone();
        seed.deserialize(value).map_err(|error| error.with_position(&span))
    }
}

/// The elements of a list that have not been deserialized yet.
struct Elements<'de>(vec::IntoIter<Reader<'de>>);

impl<'de> de::SeqAccess<'de> for Elements<'de> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some(element) = self.0.next() else { return Ok(None) };
        let span = element.span.clone();
        seed.deserialize(element).map(Some).map_err(|error| error.with_position(&span))
    }
}

/// A variant of an enum: its name alone, or a table with its name as the only key.
struct Variant<'de> {
    name: Reader<'de>,
    content: Option<Reader<'de>>,
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = ReadError;
    type Variant = Content<'de>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Content<'de>), ReadError> {
        Ok((seed.deserialize(self.name)?, Content(self.content)))
    }
}

/// The content of an enum's variant, if it has any.
struct Content<'de>(Option<Reader<'de>>);

impl<'de> Content<'de> {
    fn reader(self) -> Result<Reader<'de>, ReadError> {
        self.0.ok_or_else(|| de::Error::custom("wanted a table with this key"))
    }
}

impl<'de> de::VariantAccess<'de> for Content<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.0 {
            None => Ok(()),
            // The toml crate accepts this form too: `{ name = {} }`.
            Some(Reader { node: Node::Table(table) | Node::Value(DeValue::Table(table)), .. })
                if table.is_empty() =>
            {
                Ok(())
            }
            Some(content) => Err(de::Error::custom("wanted a string"))
                .map_err(|e: ReadError| e.with_position(&content.span)),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, ReadError> {
        seed.deserialize(self.reader()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.reader()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.reader()?.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Every {
        signed: i64,
        unsigned: u64,
        float: f64,
        is_set: bool,
        text: String,
        absent: Option<u8>,
        list: Vec<u16>,
        pair: (u8, String),
        map: BTreeMap<Name, Spanned<u8>>,
        newtype: Name,
        unit: Choice,
        held: Choice,
        keyed: Choice,
        inner: Vec<Inner>,
    }

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    struct Name(String);

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Unit,
        Held(u8),
        Keyed { a: u8 },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        a: u8,
        #[serde(default)]
        b: Option<f64>,
    }

    const EVERY: &str = "signed = -9223372036854775808\nunsigned = 18446744073709551615\nfloat = 1e3\nis_set = true\n\
        text = 'é'\nlist = [1, 0x10]\npair = [1, 'a']\nmap = { x = 7 }\nnewtype = 'n'\nunit = 'unit'\nheld = { held = 3 }\n\
        keyed = { keyed = { a = 1 } }\ninner = [{ a = 1 }, { a = 2, b = 3 }]";

    /// `toml`'s own deserializer is the reference: for values, and for the texts and positions of errors.
    #[test]
    fn agrees_with_the_deserializer_of_toml() {
        for text in [EVERY.to_owned(), EVERY.replacen("unit = 'unit'", "unit = { unit = {} }", 1)] {
            assert_eq!(from_text::<Every>(&text), Ok(toml::from_str(&text).unwrap()));
        }
        for (right, wrong) in [
            ("is_set = true", "is_set = 1"),
            ("list = [1, 0x10]", "list = [1, 70000]"),
            ("text = 'é'", "text = 3"),
            ("text = 'é'", "text = 0x10"),
            ("unit = 'unit'", "unit = 'none'"),
            ("unit = 'unit'", "unit = 3"),
            ("inner = [{ a = 1 }, { a = 2, b = 3 }]", "inner = [{ a = 1 }, { a = 2, c = 3 }]"),
            ("inner = [{ a = 1 }, { a = 2, b = 3 }]", "inner = [{ b = 1.5 }]"),
            ("inner = [{ a = 1 }, { a = 2, b = 3 }]", "inner = 3"),
            ("map = { x = 7 }", "map = { x = 256 }"),
            ("signed = -9223372036854775808\n", ""),
            ("signed =", "unknown = 1\nsigned ="),
            ("float = 1e3", "float = "),
        ] {
            let text = EVERY.replacen(right, wrong, 1);
            let peer = ReadError::from(toml::from_str::<Every>(&text).unwrap_err());
            assert_eq!(from_text::<Every>(&text), Err(peer), "{text}");
        }
    }

    #[test]
    fn a_list_for_a_table_and_a_date_are_refused() {
        for (wrong, problem) in [
            ("inner = [[1]]", "invalid type: sequence, expected struct Inner"),
            ("text = 2026-01-01", "a date is not allowed here; put text in quotes"),
        ] {
            let key = wrong.split(' ').next().unwrap();
            let line = EVERY.lines().find(|line| line.starts_with(key)).unwrap();
            let error = from_text::<Every>(&EVERY.replace(line, wrong)).unwrap_err();
            assert_eq!(error.message(), problem);
        }
    }
}
