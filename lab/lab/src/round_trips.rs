//! `rtt = "40ms"`: replaces the round-trip time with a one-way `delay` of half of it in both directions.
//!
//! This precedes deserialization, so that the key can be an axis and a result has one setting for the delay.

use std::borrow::Cow;

use hol_base::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::InputError;
use crate::link_tables::for_each_link;
use crate::source::Source;

/// Replaces every `rtt` in the network of `table` with half of it as `delay`.
pub(crate) fn replace_rtt(table: &mut DeTable<'_>, source: &Source) -> Result<(), InputError> {
    for_each_link(table, |link| replace(link, source))
}

fn replace(own: &mut DeTable<'_>, source: &Source) -> Result<(), InputError> {
    let Some(rtt) = own.remove("rtt") else { return Ok(()) };
    let refuse = |problem: String| Err(source.error(&rtt.span(), problem));
    if own.contains_key("delay") {
        return refuse("`rtt` and `delay` both set the propagation delay; remove one of them".to_owned());
    }
    let text = rtt.get_ref().as_str().unwrap_or_default();
    let half = match text.parse::<Duration>() {
        Ok(rtt) => Duration::from_nanos(rtt.as_nanos() / 2).to_string(),
        Err(problem) => return refuse(format!("`rtt`: {problem}")),
    };
    let span = rtt.span();
    let delay = Spanned::new(span.clone(), DeValue::String(Cow::Owned(half)));
    own.insert(Spanned::new(span, Cow::Borrowed("delay")), delay);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn parse(text: &str) -> Result<Experiment, InputError> {
        let text = format!("transports = ['tcp']\nmessages = 100\n{text}");
        Experiment::parse_for_any_machine("t", &Source::new("t.toml", text))
    }

    #[test]
    fn each_direction_delays_half_an_rtt_and_the_axis_keeps_its_name() {
        let experiment = parse("[sweep]\n'network.rtt' = ['40ms', '1ms']").unwrap();
        let points: Vec<_> = experiment
            .points
            .iter()
            .map(|point| (point.to_string(), point.network.delay.to_string()))
            .collect();
        let expected = [("t: tcp network.rtt=40ms", "20ms"), ("t: tcp network.rtt=1ms", "500us")];
        assert_eq!(points, expected.map(|(name, delay)| (name.to_owned(), delay.to_owned())));
    }

    #[test]
    fn a_named_path_may_have_another_round_trip() {
        let experiment = parse("network = { path = 'dsl', rtt = '80ms' }").unwrap();
        let delays = experiment.points[0].network.directions().map(|settings| settings.delay.to_string());
        assert_eq!(delays, ["40ms", "40ms"]);
        let experiment = parse("network.paths = [{ rtt = '2ms' }, { rtt = '6ms' }]").unwrap();
        let delays = experiment.points[0].network.paths.iter().map(|path| path.delay.unwrap().to_string());
        assert_eq!(delays.collect::<Vec<_>>(), ["1ms", "3ms"]);
    }

    #[test]
    fn errors_have_a_position() {
        for (text, place, cure) in [
            ("[network]\nrtt = '4ms'\ndelay = '1ms'", "t.toml:4:7", "remove one"),
            ("network.rtt = 40", "t.toml:3:15", "a time such as"),
            ("network.rtt = '40'", "t.toml:3:15", "a time such as"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(place) && error.contains(cure), "{text}: {error}");
        }
    }
}
