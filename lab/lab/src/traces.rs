//! Reads the files that a network names: a trace of the path (`network.trace`) and distributions of its delay
//! (`network.jitter_distribution`).

use hol_base::Duration;
use hol_network::{
    Distribution, EventSpec, LinkDirection, NetworkSpec, TracePlayback, TraceSpec, TraceStart, read_trace,
};
use toml::Spanned;
use toml::de::DeTable;

use crate::error::InputError;
use crate::experiment::named_in;
use crate::source::Source;

/// Converts the network's trace to events, which become part of the point, so that the file is no longer
/// needed. If the start is drawn for each run, the trace itself becomes part of the point. `is_written`
/// returns whether the file or an axis sets a key of the network.
pub(crate) fn read_traces(
    network: &mut Spanned<NetworkSpec>,
    table: &DeTable<'_>,
    is_written: impl Fn(&str) -> bool,
    source: &Source,
) -> Result<(), InputError> {
    let place = network.span();
    let start = network.as_mut().trace_start.take();
    let refuse_start = |problem: String| {
        let span = named_in(table, "network", "`trace_start`").unwrap_or_else(|| place.clone());
        source.error(&span, format!("`trace_start`: {problem}"))
    };
    let mut traces = Vec::new();
    let trace = network.as_mut().trace.take();
    for (name, direction) in trace.iter().flat_map(TraceSpec::files) {
        let text = source
            .file(name)
            .map_err(|problem| source.error_of("network.trace", &place, format!("`trace`: {problem}")))?;
        let trace = read_trace(&text, direction).map_err(|error| InputError {
            place: format!("{name}:{}", error.line),
            problem: error.problem,
        })?;
        if let Some(problem) = start.and_then(|start| why_unavailable(start, name, &trace)) {
            return Err(refuse_start(problem));
        }
        traces.push(trace);
    }
    let played = |position| traces.iter().flat_map(move |trace| trace.events_from(position));
    let first_position = match start {
        Some(TraceStart::At(position)) => position,
        Some(TraceStart::Random) | None => Duration::ZERO,
    };
    if let Some(key) = key_without_effect(&played(first_position).collect::<Vec<_>>(), is_written) {
        let span = named_in(table, "network", &format!("`{key}`")).unwrap_or_else(|| place.clone());
        let problem = format!(
            "`{key}` has no effect, because the trace sets the {key} of both directions from its first line on; remove one of them"
        );
        return Err(source.error(&span, problem));
    }
    match start {
        Some(_) if traces.is_empty() => {
            let problem = "no trace is set; name its file, as in trace = \"lte.csv\"";
            return Err(refuse_start(problem.to_owned()));
        }
        Some(TraceStart::Random) => {
            (network.as_mut().trace, network.as_mut().trace_start) =
                (Some(TraceSpec::from_playbacks(traces)), start);
        }
        Some(TraceStart::At(_)) | None => network.as_mut().events.extend(played(first_position)),
    }
    Ok(())
}

/// Returns a setting that the file or an axis sets, and that the events of a trace replace before the first packet.
fn key_without_effect(events: &[EventSpec], is_written: impl Fn(&str) -> bool) -> Option<&'static str> {
    type IsSet = fn(&EventSpec) -> bool;
    let settings: [(&str, IsSet); 3] = [
        ("rate", |event| event.rate.is_some()),
        ("delay", |event| event.delay.is_some()),
        ("loss", |event| event.loss.is_some()),
    ];
    let is_replaced = |is_set: IsSet| {
        let in_direction = |direction| {
            events.iter().any(|event| {
                event.at.is_zero()
                    && is_set(event)
                    && [LinkDirection::Both, direction].contains(&event.direction)
            })
        };
        in_direction(LinkDirection::Up) && in_direction(LinkDirection::Down)
    };
    let is_useless =
        |key: &str, is_set| is_replaced(is_set) && (is_written(key) || key == "delay" && is_written("rtt"));
    settings.into_iter().find(|(key, is_set)| is_useless(key, *is_set)).map(|(key, _)| key)
}

/// Returns why a run cannot begin at `start` of the trace in the file `name`; `None` if it can.
fn why_unavailable(start: TraceStart, name: &str, trace: &TracePlayback) -> Option<String> {
    let end = trace.end();
    match start {
        TraceStart::At(position) if position > end => Some(format!(
            "{position} is beyond the end of {name}, which ends at {end}; choose an earlier time"
        )),
        TraceStart::Random if end.is_zero() => Some(format!(
            "all lines of {name} have the time 0; add lines with later times, or remove the key"
        )),
        _ => None,
    }
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
