//! `reply = { file = "sizes.txt" }`: reads the sizes of messages from a file next to the experiment.

use hol_workloads::{Sizes, SizesFile};

use crate::error::InputError;
use crate::source::Source;

/// Replaces the name of a file of message sizes by the sizes in the file. `refuse` creates an error at the position of
/// the key.
pub(crate) fn read(
    sizes: &mut Sizes,
    source: &Source,
    refuse: impl Fn(String) -> InputError,
) -> Result<(), InputError> {
    let Sizes::File(SizesFile { file }) = sizes else { return Ok(()) };
    let text = source.read_file(file).map_err(refuse)?;
    *sizes = Sizes::read(&text)
        .map_err(|(line, problem)| InputError { place: format!("{file}:{line}"), problem })?;
    Ok(())
}
