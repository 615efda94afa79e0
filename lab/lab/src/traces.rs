//! Reads the files that a network names: a trace of the path (`network.trace`) and distributions of its delay
//! (`network.jitter_distribution`).

use hol_network::{Distribution, NetworkSpec, trace_events};
use toml::Spanned;

use crate::error::InputError;
use crate::source::Source;

/// Converts the network's trace to events, which become part of the point, so that the file is no longer
/// needed.
pub(crate) fn read_trace(network: &mut Spanned<NetworkSpec>, source: &Source) -> Result<(), InputError> {
    let place = network.span();
    let Some(trace) = network.as_mut().trace.take() else { return Ok(()) };
    for (name, direction) in trace.files() {
        let text = source
            .file(name)
            .map_err(|problem| source.error_of("network.trace", &place, format!("`trace`: {problem}")))?;
        let events = trace_events(&text, direction).map_err(|error| InputError {
            place: format!("{name}:{}", error.line),
            problem: error.problem,
        })?;
        network.as_mut().events.extend(events);
    }
    Ok(())
}

/// Reads the files of distributions; their numbers become part of the point.
pub(crate) fn read_distributions(
    network: &mut Spanned<NetworkSpec>,
    source: &Source,
) -> Result<(), InputError> {
    let place = network.span();
    for distribution in network.as_mut().distributions() {
        if let Distribution::File(name) = distribution {
            let refuse = |problem: String| source.error(&place, format!("`jitter_distribution`: {problem}"));
            let text = source.file(name).map_err(refuse)?;
            *distribution = Distribution::read(&text)
                .map_err(|(line, problem)| InputError { place: format!("{name}:{line}"), problem })?;
        }
    }
    Ok(())
}
