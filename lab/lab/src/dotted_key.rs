//! Reads and changes a TOML document by dotted keys, such as `network.links.0.delay`.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Splits a dotted key into its parts, which may be in quotes; `None` if the key is invalid.
pub(crate) fn key_path(key: &str) -> Option<Vec<String>> {
    let document = format!("{key} = 0");
    let mut table = DeTable::parse(&document).ok()?.into_inner();
    let mut path = Vec::new();
    loop {
        let mut entries = table.into_iter();
        let (name, value) = entries.next().filter(|_| entries.len() == 0)?;
        path.push(name.into_inner().into_owned());
        match value.into_inner() {
            DeValue::Table(inner) => table = inner,
            DeValue::Integer(_) => return Some(path),
            _ => return None,
        }
    }
}

/// Follows a table with a single key, and the tables in it, down to `depth`. Returns the value there, and the
/// position of its key.
pub(crate) fn leaf(mut table: DeTable<'_>, depth: usize) -> (Range<usize>, Spanned<DeValue<'_>>) {
    for _ in 1..depth {
        match table.into_iter().next().map(|(_, value)| value.into_inner()) {
            Some(DeValue::Table(inner)) => table = inner,
            other => panic!("a dotted key has tables inside, not {other:?}"),
        }
    }
    let (key, value) = table.into_iter().next().expect("the document has one key");
    (key.span(), value)
}

/// Assigns `value` to the key `path`, and creates missing tables. In a list, a part of the path is the index or the
/// `name` of an element; if the list has only one element, no such part is needed.
pub(crate) fn assign<'s>(
    table: &mut DeTable<'s>,
    path: &[String],
    key_span: &Range<usize>,
    value: Spanned<DeValue<'s>>,
) -> Result<(), String> {
    let (key, rest) = path.split_first().expect("a key has at least one part");
    let spanned_key = Spanned::new(key_span.clone(), key.clone().into());
    if rest.is_empty() {
        // Removed first, because a map would keep the old key with its position.
        table.remove(&spanned_key);
        table.insert(spanned_key, value);
        return Ok(());
    }
    let inner = table
        .entry(spanned_key)
        .or_insert_with(|| Spanned::new(key_span.clone(), DeValue::Table(DeTable::new())));
    match inner.as_mut() {
        DeValue::Table(table) => assign(table, rest, key_span, value),
        DeValue::Array(list) => {
            let length = list.len();
            let named = list.iter().position(|element| is_called(element, &rest[0]));
            let (element, inside) = match rest[0].parse::<usize>().ok().or(named) {
                Some(index) => (list.get_mut(index), &rest[1..]),
                // A list with one element needs no index.
                None if length == 1 => (list.first_mut(), rest),
                None => (None, rest),
            };
            match (element.map(Spanned::as_mut), inside) {
                (Some(DeValue::Table(table)), inside) if !inside.is_empty() => {
                    assign(table, inside, key_span, value)
                }
                _ => Err(format!(
                    "{key:?} is a list of {length} elements; write {key}.0.name for a key of its first element"
                )),
            }
        }
        _ => Err(format!(
            "{key:?} is not a table, so {:?} cannot be set in it; remove the rest of the key",
            rest.join(".")
        )),
    }
}

/// Returns the table with the position of every key and value set to `span`.
pub(crate) fn with_span<'s>(table: DeTable<'s>, span: &Range<usize>) -> DeTable<'s> {
    let entries = table.into_iter();
    entries.map(|(key, value)| (Spanned::new(span.clone(), key.into_inner()), moved(value, span))).collect()
}

fn moved<'s>(value: Spanned<DeValue<'s>>, span: &Range<usize>) -> Spanned<DeValue<'s>> {
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(with_span(table, span)),
        DeValue::Array(list) => DeValue::Array(list.into_iter().map(|value| moved(value, span)).collect()),
        plain => plain,
    };
    Spanned::new(span.clone(), value)
}

fn is_called(element: &Spanned<DeValue<'_>>, name: &str) -> bool {
    let own = element.get_ref().get("name").and_then(|own| own.get_ref().as_str());
    own == Some(name)
}

/// Returns the span of the first key of the table `at` that the error message `problem` names in backquotes.
pub(crate) fn span_of_named_key(table: &DeTable<'_>, at: &str, problem: &str) -> Option<Range<usize>> {
    let DeValue::Table(inner) = table.get(at)?.get_ref() else { return None };
    problem.split('`').skip(1).step_by(2).find_map(|key| Some(inner.get(key)?.span()))
}
