//! The common syntax of chunks, parameters and error causes: `NAME[key=value, NAME[...], ...]`.

use std::fmt;

use crate::tokens::{self, number, split};

/// Maximum nesting of brackets, such as a parameter in a chunk.
const MAX_NESTED: usize = 16;

/// A chunk, a parameter or an error cause, in the syntax of scripts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Item {
    pub(super) name: String,
    fields: Vec<(String, String)>,
    pub(super) items: Vec<Item>,
    /// Whether the item ends in `...`, so that it also matches items that contain more.
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

    pub(super) fn with_items(self, items: impl IntoIterator<Item = Self>) -> Self {
        Self { items: items.into_iter().collect(), ..self }
    }

    /// Parses several items that are separated by `;`.
    pub(super) fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        split(text, ';').into_iter().map(|item| Self::parse(item, 0)).collect()
    }

    fn parse(text: &str, nested: usize) -> Result<Self, String> {
        if nested > MAX_NESTED {
            return Err(format!("chunks and parameters are nested more than {MAX_NESTED} deep"));
        }
        let inside = text.split_once('[').and_then(|(name, rest)| Some((name, rest.strip_suffix(']')?)));
        let (name, inside) = inside.ok_or_else(|| {
            format!("{text:?} is not a chunk, parameter or cause; write NAME[key=value, ...]")
        })?;
        let mut item = Self::new(name.trim());
        for part in split(inside, ',') {
            match part.split_once('=') {
                _ if part == "..." => item.open = true,
                Some((key, value)) if !key.contains('[') => {
                    item.fields.push((key.trim().to_owned(), value.trim().to_owned()));
                }
                _ => item.items.push(Self::parse(part, nested + 1)?),
            }
        }
        Ok(item)
    }

    /// Returns the item with the number of its type in place of its name.
    fn generic(self) -> Self {
        match self.name.as_str() {
            "FORWARD_TSN_SUPPORTED" => Self::new("PARAMETER").with("type", &0xc000),
            "HOSTNAME_ADDRESS" => Self::new("PARAMETER").with("type", &11),
            name => match KINDS.iter().find(|(known, _)| *known == name) {
                Some((_, kind)) => Self::new("CHUNK").with("type", kind),
                None => self,
            },
        }
    }

    /// Returns the value of `key` in this item; `None` if it is missing or `...`.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let value = self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        value.filter(|value| *value != "...")
    }

    /// Returns the value of `key` as a number.
    pub(super) fn count<T: TryFrom<u64>>(&self, key: &str) -> Result<T, String> {
        let what = || format!("{} of {}", key, self.name);
        let text = self.get(key).ok_or_else(|| format!("{} has no {key}; write {key}=N", self.name))?;
        let value = integer(text).map_or_else(|| number(&what(), text), Ok)?;
        T::try_from(value).map_err(|_| format!("{} is {text}, which is too large", what()))
    }

    /// Returns the value of `key` as a number, or `otherwise` if the key is missing.
    pub(super) fn count_or<T: TryFrom<u64>>(&self, key: &str, otherwise: T) -> Result<T, String> {
        if self.get(key).is_some() { self.count(key) } else { Ok(otherwise) }
    }

    /// Returns the elements of the list `key=[a, b]`; empty if the key is missing.
    pub(super) fn list(&self, key: &str) -> Vec<&str> {
        self.get(key).map_or(Vec::new(), |list| split(list.trim_matches(['[', ']']), ','))
    }

    /// Returns whether `got` matches this item. Missing fields match anything; nested items may be missing only
    /// if this item ends in `...`.
    pub(super) fn describes(&self, got: &Self) -> bool {
        let same = |(key, value): &(String, String)| {
            value == "..." || got.get(key).is_some_and(|other| is_same(key, value, other))
        };
        self.name == got.name && self.fields.iter().all(same) && self.describes_items(&got.items)
    }

    /// Compares the items inside this item with `got`. All must match in order; if this item ends in `...`, `got`
    /// may contain further ones. Parameters of a handshake may have any order.
    fn describes_items(&self, got: &[Self]) -> bool {
        if matches!(self.name.as_str(), "INIT" | "INIT_ACK") {
            let mut rest: Vec<&Self> = got.iter().collect();
            let all = self.items.iter().all(|item| {
                let found = rest.iter().position(|got| item.describes(got));
                found.map(|index| rest.swap_remove(index)).is_some()
            });
            return all && (self.open || rest.is_empty());
        }
        if !self.open {
            return self.items.len() == got.len()
                && self.items.iter().zip(got).all(|(item, got)| item.describes(got));
        }
        let mut rest = got.iter();
        self.items.iter().all(|item| rest.any(|got| item.describes(got)))
    }
}

/// Returns whether two values of `key` are equal, regardless of their notation.
fn is_same(key: &str, value: &str, other: &str) -> bool {
    let both = |one: Option<u64>, other: Option<u64>| one.is_some() && one == other;
    value == other
        || both(integer(value), integer(other))
        || normal(key, value) == normal(key, other)
        || contains(key, value, other)
}

/// Compares chunks or parameters within a field, such as that of an error cause. `other` contains only type
/// numbers and octets.
fn contains(key: &str, value: &str, other: &str) -> bool {
    if !matches!(key, "chk" | "param" | "params") {
        return false;
    }
    let read = |text: &str| -> Option<Vec<Item>> {
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        split(inside, ',').into_iter().map(|item| Item::parse(item, 1).ok().map(Item::generic)).collect()
    };
    let (Some(value), Some(other)) = (read(value), read(other)) else { return false };
    value.len() == other.len() && value.iter().zip(&other).all(|(item, got)| item.describes(got))
}

/// Names and numbers of types that scripts can list. RFC 9260 sections 3.3.2 and 12.1, RFC 5061 section 4.2.7.
const KINDS: [(&str, u64); 11] = [
    ("IPv4", 5),
    ("IPv6", 6),
    ("HOSTNAME", 11),
    ("I_DATA", 64),
    ("AUTH", 15),
    ("NR_SACK", 16),
    ("RECONFIG", 130),
    ("ASCONF", 193),
    ("ASCONF_ACK", 128),
    ("FORWARD_TSN", 192),
    ("I_FORWARD_TSN", 194),
];

/// Returns the number of a type from its name; `None` if the name is unknown.
pub(super) fn kind(text: &str) -> Option<u64> {
    integer(text).or_else(|| KINDS.iter().find(|(name, _)| *name == text.trim()).map(|(_, kind)| *kind))
}

/// Returns a normalised value: without spaces, names replaced by numbers, lists of types sorted.
fn normal(key: &str, value: &str) -> String {
    let value: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    match key {
        "types" => {
            let mut kinds: Vec<Option<u64>> =
                split(value.trim_matches(['[', ']']), ',').into_iter().map(kind).collect();
            kinds.sort_unstable();
            format!("{kinds:?}")
        }
        "ids" => {
            // The second of three values is the flag: 0 for ordered, 1 for unordered. RFC 8260 section 2.3.1.
            let ids = split(value.trim_matches(['[', ']']), ',').into_iter().map(|id| {
                match id.trim_matches(['{', '}']).split(',').collect::<Vec<_>>()[..] {
                    [stream, flag, number] => {
                        let flag = match flag {
                            "0" => "O",
                            "1" => "U",
                            other => other,
                        };
                        format!("{{{stream},{flag},{number}}}")
                    }
                    _ => id.to_owned(),
                }
            });
            ids.collect::<Vec<_>>().join(",")
        }
        _ => value,
    }
}

/// Parses a decimal or hexadecimal number.
pub(super) fn integer(text: &str) -> Option<u64> {
    tokens::integer(text).and_then(|value| u64::try_from(value).ok())
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
    fn item_text_round_trips() {
        for text in ["INIT[tag=1, gaps=[2:3,5:5], STATE_COOKIE[len=4]]", "COOKIE_ACK[]", "ABORT[flgs=T]"] {
            assert_eq!(one(text).to_string(), text);
        }
        assert_eq!(Item::parse_all("A[x=1]; B[]").unwrap().len(), 2);
    }

    #[test]
    fn omitted_fields_match_anything() {
        let got = one("INIT[tag=1, os=16, A[x=1], B[]]");
        for fits in ["INIT[os=0x10, A[], B[]]", "INIT[tag=..., ...]", "INIT[A[x=1], ...]", "INIT[B[], ...]"] {
            assert!(one(fits).describes(&got), "{fits}");
        }
        for other in
            ["INIT[os=17, ...]", "INIT[tag=1]", "INIT[B[], B[], ...]", "INIT[is=1, ...]", "SACK[...]"]
        {
            assert!(!one(other).describes(&got), "{other}");
        }
        let causes = one("ABORT[A[x=1], B[]]");
        assert!(one("ABORT[A[], B[]]").describes(&causes) && !one("ABORT[B[], A[]]").describes(&causes));
        assert!(one("INIT[B[], A[x=1]]").describes(&got), "parameters have no order");
    }

    #[test]
    fn equal_values_match_in_any_notation() {
        for (script, endpoint) in [
            ("A[types=[FORWARD_TSN, I_DATA]]", "A[types=[64,192]]"),
            ("A[types=[IPv4]]", "A[types=[5]]"),
            ("F[ids=[{1, 0}, {2,3}]]", "F[ids=[{1,0},{2,3}]]"),
            ("F[ids=[{1,0,7}, {1,1,8}]]", "F[ids=[{1,O,7},{1,U,8}]]"),
            (
                "U[params=[PARAMETER[type=0xc0cc, len=5, val=[0x01]]]]",
                "U[params=[PARAMETER[type=49356, len=5, val=[0x01]]]]",
            ),
            ("U[params=[FORWARD_TSN_SUPPORTED[]]]", "U[params=[PARAMETER[type=49152, len=4, val=[]]]]"),
            ("U[chk=FORWARD_TSN[cum_tsn=1]]", "U[chk=CHUNK[type=192, flgs=0, len=8, val=[]]]"),
        ] {
            assert!(one(script).describes(&one(endpoint)), "{script}");
        }
        assert!(!one("A[types=[IPv6]]").describes(&one("A[types=[5]]")));
        let deep = "A[".repeat(100_000) + &"]".repeat(100_000);
        assert!(Item::parse_all(&deep).unwrap_err().contains("16 deep"));
    }
}
