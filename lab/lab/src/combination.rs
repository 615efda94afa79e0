//! An experiment's table at one combination of the axes.

use toml::de::DeTable;

use crate::axes::Assignment;
use crate::error::InputError;
use crate::named_paths;
use crate::round_trips;
use crate::source::Source;

/// Returns the experiment with the values of one combination of the axes, ready for deserialization: delays replace
/// round-trip times, and settings replace named paths.
pub(crate) fn apply_and_resolve<'s>(
    table: &DeTable<'s>,
    step: &[Assignment<'s>],
    source: &Source,
) -> Result<DeTable<'s>, InputError> {
    resolve_table(apply_combination(table, step, source)?, source)
}

/// Returns the experiment with the values of one combination of the axes; everything else is as its author wrote
/// it.
pub(crate) fn apply_combination<'s>(
    table: &DeTable<'s>,
    step: &[Assignment<'s>],
    source: &Source,
) -> Result<DeTable<'s>, InputError> {
    let mut table = table.clone();
    step.iter().try_for_each(|set| set.apply(&mut table, source))?;
    Ok(table)
}

/// Returns the experiment with delays in place of round-trip times, and settings in place of named paths.
pub(crate) fn resolve_table<'s>(mut table: DeTable<'s>, source: &Source) -> Result<DeTable<'s>, InputError> {
    round_trips::replace_rtt(&mut table, source)?;
    named_paths::resolve_paths(&mut table, source)?;
    Ok(table)
}
