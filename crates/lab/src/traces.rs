//! `network.trace`: a path that changes as a file beside the experiment says.

use hol_network::{NetworkSpec, trace_events};
use toml::Spanned;

use crate::error::InputError;
use crate::source::Source;

/// Makes events of the network's trace; what it says is then part of the point, whatever becomes of the file.
pub(crate) fn play(network: &mut Spanned<NetworkSpec>, source: &Source) -> Result<(), InputError> {
    let place = network.span();
    let Some(trace) = network.as_mut().trace.take() else { return Ok(()) };
    for (name, direction) in trace.files() {
        let text =
            source.file(name).map_err(|problem| source.error(&place, format!("`trace`: {problem}")))?;
        let events = trace_events(&text, direction).map_err(|error| InputError {
            place: format!("{name}:{}", error.line),
            problem: error.problem,
        })?;
        network.as_mut().events.extend(events);
    }
    Ok(())
}
