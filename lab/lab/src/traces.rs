//! Reads the files that a network names: a trace of the path (`network.trace`) and distributions of its delay
//! (`network.jitter_distribution`).

use std::ops::Range;

use hol_base::Duration;
use hol_network::{
    Distribution, EventSpec, LinkDirection, NetworkSpec, TracePlayback, TraceSpec, TraceStart,
    read_repeating_trace, read_trace,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::axes::Assignment;
use crate::dotted_key::span_of_named_key;
use crate::error::InputError;
use crate::link_tables::for_each_link;
use crate::source::Source;

/// Converts the network's trace to events, which become part of the point, so that the file is no longer needed. If the
/// position at which a run starts is drawn for each run, the trace itself becomes part of the point. `written` is the
/// experiment as its author wrote it: with the values of its axes, but without the settings of named paths. If the
/// trace is an axis, other points may use the settings that it replaces.
pub(crate) fn read_traces(
    network: &mut Spanned<NetworkSpec>,
    written: &DeTable<'_>,
    axes: &[Assignment<'_>],
    source: &Source,
) -> Result<(), InputError> {
    let place = network.span();
    let start = network.as_mut().trace_start.take();
    let refuse_start = |problem: String| {
        let span = span_of_named_key(written, "network", "`trace_start`").unwrap_or_else(|| place.clone());
        source.error(&span, format!("`trace_start`: {problem}"))
    };
    let mut traces = Vec::new();
    let trace = network.as_mut().trace.take();
    for (name, direction) in trace.iter().flat_map(TraceSpec::files) {
        let text = source
            .read_file(name)
            .map_err(|problem| source.error_of("network.trace", &place, format!("`trace`: {problem}")))?;
        let read = if start.is_some() { read_repeating_trace } else { read_trace };
        let trace = read(&text, direction).map_err(|error| InputError {
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
    if !axes.iter().any(|set| set.key.starts_with("network.trace")) {
        refuse_replaced_settings(&played(first_position).collect::<Vec<_>>(), written, source)?;
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

/// A setting of a link that a trace can change, and a function that returns whether an event changes it.
type Setting = (&'static str, fn(&EventSpec) -> bool);

const SETTINGS: [Setting; 4] = [
    ("rate", |event| event.rate.is_some()),
    ("delay", |event| event.delay.is_some()),
    ("rtt", |event| event.delay.is_some()),
    ("loss", |event| event.loss.is_some()),
];

/// Returns an error for a setting of a link that a trace replaces before the first packet, because the setting
/// would have no effect.
fn refuse_replaced_settings(
    events: &[EventSpec],
    written: &DeTable<'_>,
    source: &Source,
) -> Result<(), InputError> {
    let is_replaced = |(_, is_set): &Setting, direction| {
        events.iter().any(|event| {
            event.at.is_zero() && is_set(event) && [LinkDirection::Both, direction].contains(&event.direction)
        })
    };
    let [up, down] = [LinkDirection::Up, LinkDirection::Down].map(|direction| {
        SETTINGS.into_iter().filter(|setting| is_replaced(setting, direction)).collect::<Vec<_>>()
    });
    let both: Vec<Setting> =
        up.iter().filter(|(key, _)| down.iter().any(|(other, _)| key == other)).copied().collect();
    // The links of an ns script, which need a rate and a delay, have the position of the script's name, like the whole table.
    let script = written.get("network").map(Spanned::span);
    for_each_link(&mut written.clone(), |link| {
        refuse_keys(link, &both, script.as_ref(), source)?;
        for (direction, replaced) in [("up", &up), ("down", &down)] {
            if let Some(DeValue::Table(own)) = link.get(direction).map(Spanned::get_ref) {
                refuse_keys(own, replaced, script.as_ref(), source)?;
            }
        }
        Ok(())
    })
}

fn refuse_keys(
    link: &DeTable<'_>,
    replaced: &[Setting],
    script: Option<&Range<usize>>,
    source: &Source,
) -> Result<(), InputError> {
    let own = |key| link.get(key).map(Spanned::span).filter(|span| Some(span) != script);
    let Some((key, span)) = replaced.iter().find_map(|(key, _)| Some((key, own(*key)?))) else {
        return Ok(());
    };
    let what = if *key == "rtt" { "delay" } else { key };
    let problem = format!(
        "`{key}` has no effect, because the trace sets the {what} from its first line on; remove one of them"
    );
    Err(source.error(&span, problem))
}

/// Returns why a run cannot begin at `start` in the trace from the file `name`; `None` if it can.
fn why_unavailable(start: TraceStart, name: &str, trace: &TracePlayback) -> Option<String> {
    let end = trace.end();
    match start {
        TraceStart::At(position) if position > end => {
            Some(format!("{position} is beyond the end of {name}, which lasts {end}; choose an earlier time"))
        }
        TraceStart::Random if end.is_zero() => Some(format!(
            "all lines of {name} have the time 0; add lines with later times, or remove the key"
        )),
        _ => None,
    }
}

/// Reads the files of distributions. Their numbers become part of the point.
pub(crate) fn read_distributions(
    network: &mut Spanned<NetworkSpec>,
    source: &Source,
) -> Result<(), InputError> {
    let place = network.span();
    for distribution in network.as_mut().distributions() {
        if let Distribution::File(name) = distribution {
            let refuse = |problem: String| source.error(&place, format!("`jitter_distribution`: {problem}"));
            let text = source.read_file(name).map_err(refuse)?;
            *distribution = Distribution::read(&text)
                .map_err(|(line, problem)| InputError { place: format!("{name}:{line}"), problem })?;
        }
    }
    Ok(())
}
