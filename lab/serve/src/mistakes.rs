//! Finds the mistakes of an experiment file, whose parser reports only the first.

use std::ops::Range;

use hol_lab::{InputError, Stopwatch};
use toml_edit::{ArrayOfTables, Document, Item, Key, Table};

/// Maximum number of mistakes to find.
const MAX_MISTAKES: usize = 10;
/// Maximum number of octets to parse in the search for mistakes.
const MAX_WORK: usize = 1 << 20;

/// Maximum duration of the search in seconds. Each step may read large files that the text names.
const MAX_SECONDS: f64 = 0.5;

/// The key that determines which other keys its table may have.
const KIND_KEY: &str = "kind";

/// Returns the mistakes of `text`, in the order in which `read` finds them. `work` is the number of octets
/// that `read` parses.
///
/// Each step replaces the entry that contains the mistake by blanks, so that positions do not change, and
/// reads the text again. A mistake counts if it disappears with its entry. Thus an error does not count if it
/// is about a key that is missing only because its entry was replaced.
pub fn find_mistakes(
    text: &str,
    work: usize,
    read: impl Fn(&str) -> Result<(), InputError>,
) -> Vec<InputError> {
    let Err(mut error) = read(text) else { return Vec::new() };
    let (mut found, mut rest) = (Vec::new(), text.to_owned());
    let max = (MAX_WORK / work.max(1)).clamp(1, MAX_MISTAKES);
    let watch = Stopwatch::start();
    while found.len() < max && watch.seconds() < MAX_SECONDS {
        let entry = offset(&rest, &error.place).and_then(|offset| entry_at(&rest, offset));
        let without = entry.map(|entry| blanked(&rest, entry));
        let next = without.as_deref().map(&read);
        match (without, next) {
            (Some(without), Some(next)) if next != Err(error.clone()) => {
                found.push(error);
                // A missing bracket makes many lines wrong, so the search ends.
                if !is_toml(&rest) && !is_toml(&without) {
                    break;
                }
                rest = without;
                let Err(next) = next else { break };
                error = next;
            }
            _ if found.is_empty() => found.push(error.clone()),
            _ => break,
        }
    }
    found
}

fn is_toml(text: &str) -> bool {
    Document::parse(text).is_ok()
}

/// Returns the offset in octets of a position, `file:line:column`.
fn offset(text: &str, place: &str) -> Option<usize> {
    let mut parts = place.rsplitn(3, ':');
    let column: usize = parts.next()?.parse().ok()?;
    let line: usize = parts.next()?.parse().ok()?;
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let within = text.get(start..)?.char_indices().nth(column.checked_sub(1)?);
    Some(start + within.map_or(0, |(at, _)| at))
}

/// Returns the range of the entry at an offset: a key with its value, a table with its entries, or a line that is not TOML.
fn entry_at(text: &str, offset: usize) -> Option<Range<usize>> {
    match Document::parse(text) {
        Ok(document) => in_table(text, document.as_table(), offset),
        Err(_) => {
            let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
            let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
            (!text[start..end].trim().is_empty()).then_some(start..end)
        }
    }
}

fn in_table(text: &str, table: &Table, offset: usize) -> Option<Range<usize>> {
    table.iter().find_map(|(name, item)| {
        let key = table.key(name)?;
        match item {
            Item::Table(inner) => in_table_with_heading(text, inner, key, offset),
            Item::ArrayOfTables(list) => in_list(text, list, key, offset),
            _ => {
                let whole = entry_range(key, item)?;
                whole.contains(&offset).then_some(whole)
            }
        }
    })
}

fn in_list(text: &str, list: &ArrayOfTables, key: &Key, offset: usize) -> Option<Range<usize>> {
    list.iter().find_map(|table| in_table_with_heading(text, table, key, offset))
}

/// Returns the range to overwrite if `offset` is in `table`, which has a heading: an entry, or the whole table if the
/// mistake is in its heading or in `kind`, which determines the other keys. Otherwise returns `None`.
fn in_table_with_heading(text: &str, table: &Table, key: &Key, offset: usize) -> Option<Range<usize>> {
    let heading = table.span().filter(|_| !table.is_dotted() && !table.is_implicit());
    if let Some(entry) = in_table(text, table, offset) {
        let decides = table.key(KIND_KEY).and_then(Key::span).is_some_and(|kind| entry.contains(&kind.start));
        return Some(if decides {
            heading.map_or(entry, |heading| table_range(text, heading))
        } else {
            entry
        });
    }
    let heading = heading.or_else(|| key.span())?;
    heading.contains(&offset).then(|| table_range(text, heading))
}

/// Returns the range from a heading up to the next one.
fn table_range(text: &str, heading: Range<usize>) -> Range<usize> {
    let lines = text[heading.end..].split_inclusive('\n').scan(heading.end, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    let next = lines.skip(1).find(|(_, line)| line.starts_with('['));
    heading.start..next.map_or(text.len(), |(start, _)| start)
}

fn entry_range(key: &Key, item: &Item) -> Option<Range<usize>> {
    let (key, value) = (key.span()?, item.span()?);
    Some(key.start.min(value.start)..key.end.max(value.end))
}

/// Returns the text with blanks for all characters in `range` except line ends.
fn blanked(text: &str, range: Range<usize>) -> String {
    let blanks = text[range.clone()].chars().map(|c| if c == '\n' { c } else { ' ' });
    // A character of several octets becomes one blank, because positions count characters.
    [&text[..range.start], &blanks.collect::<String>(), &text[range.end..]].concat()
}

#[cfg(test)]
mod tests {
    use hol_lab::{Experiment, Source};

    use super::*;

    fn positions(text: &str) -> Vec<String> {
        let read = |text: &str| Experiment::parse_for_any_machine("a", &Source::new("a", text)).map(drop);
        find_mistakes(text, text.len(), read).into_iter().map(|error| error.place).collect()
    }

    #[test]
    fn each_mistake_is_found_at_its_position() {
        let text = "title = 'é'\ntransports = ['tpc']\nmesages = 5\nseed = 'x'\n[network]\ndelai = '1ms'\nrate = '10Mbat'\n\
            [netwrok]\nloss = '1%'\n";
        let mut found = positions(text);
        found.sort();
        assert_eq!(found, ["a:2:15", "a:3:1", "a:4:8", "a:6:1", "a:7:8", "a:8:2"]);
    }

    #[test]
    fn line_that_is_not_toml_is_found_with_other_mistakes() {
        let found = positions("transports = ['tcp']\nseed = = 1\nmesages = 1\n");
        assert_eq!(found.len(), 2, "{found:?}");
        let found = positions("transports = ['tcp'\nmessages = 5\nseed = 1\n");
        assert_eq!(found.len(), 1, "a bracket is missing: {found:?}");
    }

    /// `size` is right for the application that was meant, and a file needs transports.
    #[test]
    fn consequences_of_a_mistake_are_not_reported() {
        assert_eq!(positions("transports = ['tcp']\n[workload]\nkind = 'onway'\nsize = '64B'\n").len(), 1);
        assert_eq!(positions("title = 'a'\ntransports = 3\n").len(), 1);
        assert_eq!(positions("title = 'a'\n").len(), 1);
        assert_eq!(positions("transports = ['tcp']\n").len(), 0);
    }
}
