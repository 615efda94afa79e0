//! JSONPath: the part of RFC 9535 that selects one value, or all members of one.

use std::fmt;

use serde_json::Value;

/// A query made of name, index and wildcard selectors. RFC 9535 section 2.3
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    selectors: Vec<Selector>,
}

/// A step of a JSONPath query. RFC 9535 section 2.3.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Selector {
    Name(String),
    /// The index of an element; negative ones count from the end.
    Index(i64),
    Wildcard,
}

impl JsonPath {
    /// Parses a query such as `$.end.streams[*].seconds`. The error names the first part that is not
    /// supported.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.strip_prefix('$').ok_or("a path begins with $")?;
        let mut selectors = Vec::new();
        while !rest.is_empty() {
            let (selector, behind) = match rest.strip_prefix('[') {
                Some(bracketed) => in_brackets(bracketed)?,
                None => shorthand(rest)?,
            };
            selectors.push(selector);
            rest = behind;
        }
        Ok(Self { text: text.to_owned(), selectors })
    }

    /// Returns the selected values, in the order of the JSON text.
    pub fn query<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        self.selectors.iter().fold(vec![root], |found, selector| {
            found.into_iter().flat_map(|value| selector.select(value)).collect()
        })
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Selector {
    fn select<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Name(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(elements)) => {
                let length = i64::try_from(elements.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { index.saturating_add(length) } else { *index };
                usize::try_from(index).ok().and_then(|index| elements.get(index)).into_iter().collect()
            }
            (Self::Wildcard, Value::Object(members)) => members.values().collect(),
            (Self::Wildcard, Value::Array(elements)) => elements.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Parses `.name` or `.*`; also returns the rest of the text. RFC 9535 section 2.5.1
fn shorthand(text: &str) -> Result<(Selector, &str), String> {
    let name =
        text.strip_prefix('.').ok_or_else(|| format!("a dot or a bracket is missing before {text:?}"))?;
    if let Some(rest) = name.strip_prefix('*') {
        return Ok((Selector::Wildcard, rest));
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
    if end == 0 || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("{text:?} has no name after its dot"));
    }
    Ok((Selector::Name(name[..end].to_owned()), &name[end..]))
}

/// Parses `'name']`, `"name"]`, `-1]` or `*]`; also returns the rest of the text. RFC 9535 section 2.3
fn in_brackets(text: &str) -> Result<(Selector, &str), String> {
    let quoted =
        text.strip_prefix('\'').map(|rest| (rest, "']")).or(text.strip_prefix('"').map(|rest| (rest, "\"]")));
    if let Some((rest, end)) = quoted {
        let (name, rest) =
            rest.split_once(end).ok_or_else(|| format!("\"[{text}\" has no closing bracket"))?;
        return Ok((Selector::Name(name.to_owned()), rest));
    }
    let (inside, rest) = text.split_once(']').ok_or_else(|| format!("\"[{text}\" has no closing bracket"))?;
    let selector = match inside {
        "*" => Selector::Wildcard,
        index => Selector::Index(index.parse().map_err(|_| {
            format!(
                "[{index}] is neither an index nor * nor a quoted name; slices and filters are not supported"
            )
        })?),
    };
    Ok((selector, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn found(path: &str, value: &Value) -> Vec<Value> {
        JsonPath::parse(path).unwrap().query(value).into_iter().cloned().collect()
    }

    /// The paths are examples of RFC 9535 section 1.5.
    #[test]
    fn names_indices_and_wildcards_select_as_in_rfc_9535() {
        let value = json!({"a": {"b c": [1, 2, 6]}, "d": {"x": 1, "y": 2}, "ä": 3});
        assert_eq!(found("$", &value), std::slice::from_ref(&value));
        assert_eq!(found("$.a['b c'][0]", &value), [json!(1)]);
        assert_eq!(found("$[\"a\"].*[-1]", &value), [json!(6)]);
        assert_eq!(found("$.d[*]", &value), [json!(1), json!(2)]);
        assert_eq!(found("$.ä", &value), [json!(3)]);
        assert_eq!(found("$.a[0]", &value), [] as [Value; 0]);
        assert_eq!(found("$.a['b c'][-4]", &value), [] as [Value; 0]);
        assert_eq!(found("$.d.x.y", &value), [] as [Value; 0]);
    }

    #[test]
    fn unsupported_paths_are_refused() {
        for wrong in
            ["", "end.x", "$end", "$.", "$.1", "$..x", "$[", "$['x", "$[1:2]", "$[?@.x]", "$[1", "$ .x"]
        {
            assert!(JsonPath::parse(wrong).is_err(), "{wrong}");
        }
    }
}
