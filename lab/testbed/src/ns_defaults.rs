//! ns's own defaults: the attributes of its classes with their values. ns 2.35, tcl/lib/ns-default.tcl.

use std::sync::LazyLock;

use crate::tcl::{Word, WordError};

/// A default of ns: class, attribute and value.
type Default = (&'static str, &'static str, &'static str);

/// The defaults of ns, parsed from a text with one attribute of a class per line.
static DEFAULTS: LazyLock<Vec<Default>> = LazyLock::new(|| {
    let lines = include_str!("ns-default.txt").lines().filter(|line| !line.starts_with('#'));
    let default = |line: &'static str| {
        let (class, rest) = line.split_once(' ')?;
        let (attribute, value) = rest.split_once(' ')?;
        Some((class, attribute, value))
    };
    lines.filter_map(default).collect()
});

/// Returns all defaults of ns: class, attribute and value.
pub(crate) fn defaults() -> impl Iterator<Item = Default> {
    DEFAULTS.iter().copied()
}

/// Returns ns's default of an attribute of a class.
pub(crate) fn default_of(class: &str, attribute: &str) -> Option<&'static str> {
    nearest_default(class, attribute).map(|(_, value)| value)
}

/// Finds ns's default of an attribute for objects of `class`. Returns the nearest class that defines the attribute, and
/// the value.
pub(crate) fn nearest_default(class: &str, attribute: &str) -> Option<(&'static str, &'static str)> {
    let is_above =
        |above: &str| class == above || class.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    let all = defaults().filter(|(above, name, _)| *name == attribute && is_above(above));
    all.max_by_key(|(above, ..)| above.len()).map(|(above, _, value)| (above, value))
}

/// Returns ns's default of an attribute, parsed by `read`; `None` if the class has none.
pub(crate) fn read_default<T>(
    class: &str,
    attribute: &str,
    read: fn(&Word) -> Result<T, WordError>,
) -> Option<T> {
    let text = default_of(class, attribute)?.to_owned();
    read(&Word { text, at: 0, verbatim: None }).ok()
}
