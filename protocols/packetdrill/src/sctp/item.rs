//! The form that chunks, parameters and causes share: `NAME[key=value, NAME[...], ...]`.

use std::fmt;

use crate::words::number;

/// A chunk, a parameter or a cause.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Item {
    pub(super) name: String,
    fields: Vec<(String, String)>,
    pub(super) items: Vec<Item>,
    /// `...` at its end: there may be more.
    open: bool,
}

impl Item {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub(super) fn with(mut self, key: &str, value: &dyn ToString) -> Self {
        self.fields.push((key.to_owned(), value.to_string()));
        self
    }

    pub(super) fn holding(self, items: impl IntoIterator<Item = Self>) -> Self {
        Self { items: items.into_iter().collect(), ..self }
    }

    /// Items with `;` between them.
    pub(super) fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        split(text, ';').into_iter().map(Self::parse).collect()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let inside = text.split_once('[').and_then(|(name, rest)| Some((name, rest.strip_suffix(']')?)));
        let (name, inside) = inside
            .ok_or_else(|| format!("{text:?} is no chunk, parameter or cause; write NAME[key=value, ...]"))?;
        let mut item = Self::new(name.trim());
        for part in split(inside, ',') {
            match part.split_once('=') {
                _ if part == "..." => item.open = true,
                Some((key, value)) if !key.contains('[') => {
                    item.fields.push((key.trim().to_owned(), value.trim().to_owned()));
                }
                _ => item.items.push(Self::parse(part)?),
            }
        }
        Ok(item)
    }

    /// The value of `key`, if it is there and not left open.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let value = self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        value.filter(|value| *value != "...")
    }

    /// `key=...`.
    pub(super) fn leaves_open(&self, key: &str) -> bool {
        self.fields.iter().any(|(name, value)| name == key && value == "...")
    }

    /// The number at `key`.
    pub(super) fn count<T: TryFrom<u64>>(&self, key: &str) -> Result<T, String> {
        let what = || format!("{} of {}", key, self.name);
        let text = self.get(key).ok_or_else(|| format!("{} has no {key}; write {key}=N", self.name))?;
        let value = integer(text).map_or_else(|| number(&what(), text), Ok)?;
        T::try_from(value).map_err(|_| format!("{} is {text}, which is too large", what()))
    }

    /// The same, or `otherwise` where it is left out.
    pub(super) fn count_or<T: TryFrom<u64>>(&self, key: &str, otherwise: T) -> Result<T, String> {
        if self.get(key).is_some() { self.count(key) } else { Ok(otherwise) }
    }

    /// The parts of `key=[a, b]`; none where it is left out.
    pub(super) fn list(&self, key: &str) -> Vec<&str> {
        self.get(key).map_or(Vec::new(), |list| split(list.trim_matches(['[', ']']), ','))
    }

    /// Whether `got` is what this describes: what it leaves out may be anything, but for items where it does not end in `...`.
    pub(super) fn describes(&self, got: &Self) -> bool {
        let same = |(key, value): &(String, String)| {
            value == "..."
                || got.get(key).is_some_and(|other| value == other || both(integer(value), integer(other)))
        };
        self.name == got.name && self.fields.iter().all(same) && self.describes_items(&got.items)
    }

    /// All of them and no others in this order; or these among others.
    fn describes_items(&self, got: &[Self]) -> bool {
        if !self.open {
            return self.items.len() == got.len()
                && self.items.iter().zip(got).all(|(item, got)| item.describes(got));
        }
        let mut rest = got.iter();
        self.items.iter().all(|item| rest.any(|got| item.describes(got)))
    }
}

fn both(one: Option<u64>, other: Option<u64>) -> bool {
    one.is_some() && one == other
}

/// A number, decimal or hexadecimal.
pub(super) fn integer(text: &str) -> Option<u64> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

/// The parts between separators that stand outside of brackets and quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut quoted) = (0, false);
    let parts = text.split(|c| {
        quoted ^= c == '"';
        depth += i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'));
        c == separator && depth == 0 && !quoted
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.iter().map(|(key, value)| format!("{key}={value}"));
        let parts: Vec<String> = fields.chain(self.items.iter().map(Self::to_string)).collect();
        write!(f, "{}[{}]", self.name, parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Item {
        Item::parse_all(text).unwrap().remove(0)
    }

    #[test]
    fn an_item_is_written_as_it_is_read() {
        for text in ["INIT[tag=1, gaps=[2:3,5:5], STATE_COOKIE[len=4]]", "COOKIE_ACK[]", "ABORT[flgs=T]"] {
            assert_eq!(one(text).to_string(), text);
        }
        assert_eq!(Item::parse_all("A[x=1]; B[]").unwrap().len(), 2);
    }

    #[test]
    fn what_is_left_out_may_be_anything() {
        let got = one("INIT[tag=1, os=16, A[x=1], B[]]");
        for fits in ["INIT[os=0x10, A[], B[]]", "INIT[tag=..., ...]", "INIT[A[x=1], ...]", "INIT[B[], ...]"] {
            assert!(one(fits).describes(&got), "{fits}");
        }
        for other in
            ["INIT[os=17, ...]", "INIT[tag=1]", "INIT[B[], A[], ...]", "INIT[is=1, ...]", "SACK[...]"]
        {
            assert!(!one(other).describes(&got), "{other}");
        }
    }
}
