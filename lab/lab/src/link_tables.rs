//! The tables of an experiment that describe a link, before they are deserialized.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::InputError;

/// Calls a function for each table of the network in `table` that describes a link: each of `paths`, `links` and
/// `lans`, and `[network]` itself.
pub(crate) fn for_each_link<'s>(
    table: &mut DeTable<'s>,
    mut change: impl FnMut(&mut DeTable<'s>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let Some(DeValue::Table(network)) = table.get_mut("network").map(Spanned::as_mut) else { return Ok(()) };
    for list in ["paths", "links", "lans"] {
        let Some(DeValue::Array(links)) = network.get_mut(list).map(Spanned::as_mut) else { continue };
        for link in links.iter_mut() {
            if let DeValue::Table(link) = link.as_mut() {
                change(link)?;
            }
        }
    }
    change(network)
}
