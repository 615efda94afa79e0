//! Options of transports as keys: `sctp.rto_min` sets that option of every `sctp` in `transports`; names of
//! transports do not change. Points of other transports do not have the key.

use std::ops::Range;

use hol_stack::ProtocolKind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::InputError;
use crate::source::Source;
use crate::value_label::label;

/// Returns whether a dotted key such as `sctp.rto_min` sets an option of a transport. Points of other transports do
/// not have such a key.
pub fn is_transport_option(key: &str) -> bool {
    key.split_once('.').is_some_and(|(kind, option)| is_kind(kind) && !option.contains('.'))
}

/// Returns whether a key is an option of a transport.
pub(crate) fn is_option(path: &[String]) -> bool {
    path.len() == 2 && is_kind(&path[0])
}

fn is_kind(name: &str) -> bool {
    ProtocolKind::ALL.into_iter().any(|kind| kind.name() == name)
}

/// Removes the transport options that the command line sets from `table`, and assigns them to the transports.
pub(crate) fn apply_overrides(table: &mut DeTable<'_>, source: &Source) -> Result<(), InputError> {
    for kind in ProtocolKind::ALL {
        let is_set = |key: &str| source.is_set(&[kind.name().to_owned(), key.to_owned()]);
        let Some(DeValue::Table(options)) = table.get(kind.name()).map(Spanned::get_ref) else { continue };
        if !options.keys().all(|key| is_set(key.get_ref())) {
            continue;
        }
        let Some(DeValue::Table(options)) = table.remove(kind.name()).map(Spanned::into_inner) else {
            continue;
        };
        for (key, value) in options {
            let path = [kind.name().to_owned(), key.get_ref().to_string()];
            assign(table, &path, &value.span(), &label(value.get_ref()))
                .map_err(|problem| source.error(&value.span(), problem))?;
        }
    }
    Ok(())
}

/// Sets an option for each transport of the kind to which the option belongs.
pub(crate) fn assign(
    table: &mut DeTable<'_>,
    path: &[String],
    span: &Range<usize>,
    value: &str,
) -> Result<(), String> {
    let [kind, key] = path else {
        return Err("an option consists of a transport and a name, as in sctp.streams".to_owned());
    };
    // A value that is not a list is refused where it is read.
    let Some(DeValue::Array(transports)) = table.get_mut("transports").map(Spanned::as_mut) else {
        return Ok(());
    };
    let mut count = 0;
    for transport in transports.iter_mut() {
        let Some(spec) = spec(transport.get_ref()).filter(|spec| is_of(spec, kind)) else { continue };
        count += 1;
        let spec = with_option(&spec, key, value)?;
        let named = match transport.get_ref() {
            DeValue::Table(named) => named.clone(),
            _ => DeTable::new(),
        };
        *transport =
            Spanned::new(span.clone(), DeValue::Table(renamed(named, transport.get_ref(), spec, span)));
    }
    match count {
        0 => Err(format!("no transport of the experiment is {kind}; add one to `transports`")),
        _ => Ok(()),
    }
}

/// Returns the specification of a transport, such as `sctp:streams=8`; the transport may be a table that also has
/// a label.
fn spec(transport: &DeValue<'_>) -> Option<String> {
    match transport {
        DeValue::String(spec) => Some(spec.to_string()),
        DeValue::Table(named) => Some(named.get("spec")?.get_ref().as_str()?.to_owned()),
        _ => None,
    }
}

fn is_of(spec: &str, kind: &str) -> bool {
    spec.split(':').next().is_some_and(|name| name.trim() == kind)
}

fn with_option(spec: &str, key: &str, value: &str) -> Result<String, String> {
    let same = |option: &str| {
        let name = option.split('=').next().unwrap_or_default().trim();
        let plain = |name: &str| if name == "cc" { "congestion".to_owned() } else { name.to_owned() };
        plain(name) == plain(key)
    };
    match spec.split_once(':') {
        Some((_, options)) if options.split(',').any(same) => {
            Err(format!("{spec:?} already sets {key}; remove one of the two"))
        }
        Some(_) => Ok(format!("{spec},{key}={value}")),
        None => Ok(format!("{spec}:{key}={value}")),
    }
}

/// Returns the transport with another specification; its label stays the same.
fn renamed<'s>(
    mut named: DeTable<'s>,
    transport: &DeValue<'_>,
    with: String,
    span: &Range<usize>,
) -> DeTable<'s> {
    let key = |name: &'static str| Spanned::new(span.clone(), name.into());
    let text = |text: String| Spanned::new(span.clone(), DeValue::String(text.into()));
    if !named.contains_key("label") {
        named.insert(key("label"), text(spec(transport).unwrap_or_default()));
    }
    named.insert(key("spec"), text(with));
    named
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;
    use crate::source::Source;

    fn points(text: &str) -> Result<Vec<String>, String> {
        let experiment = Experiment::parse("a", &Source::new("a", text)).map_err(|e| e.to_string())?;
        let show = |point: &crate::Point| format!("{point} is {}", point.transport);
        Ok(experiment.points.iter().map(show).collect())
    }

    #[test]
    fn an_option_is_swept_and_the_transport_keeps_its_name() {
        let text = "transports = ['tcp', 'sctp:streams=8', { spec = 'sctp', label = 'one' }]\n\
                    [sweep]\n'sctp.rto_min' = ['100ms', '1s']";
        let expected = [
            "a: tcp is tcp",
            "a: sctp:streams=8 sctp.rto_min=100ms is sctp:streams=8,rto_min=100ms",
            "a: sctp:streams=8 sctp.rto_min=1s is sctp:streams=8,rto_min=1s",
            "a: one sctp.rto_min=100ms is sctp:rto_min=100ms",
            "a: one sctp.rto_min=1s is sctp:rto_min=1s",
        ];
        assert_eq!(points(text).unwrap(), expected);
    }

    #[test]
    fn transports_without_the_option_have_only_the_other_keys() {
        let text = "transports = ['tcp', 'sctp']\n[sweep]\n'network.loss' = ['0%', '1%']\n\
                    'sctp.rto_min' = ['100ms', '1s']\n'tcp.cc' = ['reno']";
        let expected = [
            "a: tcp network.loss=0% tcp.cc=reno is tcp:cc=reno",
            "a: tcp network.loss=1% tcp.cc=reno is tcp:cc=reno",
            "a: sctp network.loss=0% sctp.rto_min=100ms is sctp:rto_min=100ms",
            "a: sctp network.loss=0% sctp.rto_min=1s is sctp:rto_min=1s",
            "a: sctp network.loss=1% sctp.rto_min=100ms is sctp:rto_min=100ms",
            "a: sctp network.loss=1% sctp.rto_min=1s is sctp:rto_min=1s",
        ];
        assert_eq!(points(text).unwrap(), expected);
    }

    /// The lists of a zip are one axis, on which each transport has its own option.
    #[test]
    fn options_of_two_transports_in_a_zip_stay_together() {
        let text = "transports = ['tcp', 'sctp', 'quic']\n[[zip]]\n'tcp.rto_min' = ['200ms', '1s']\n\
                    'sctp.rto_min' = ['200ms', '1s']";
        let expected = [
            "a: tcp sctp.rto_min=200ms tcp.rto_min=200ms is tcp:rto_min=200ms",
            "a: tcp sctp.rto_min=1s tcp.rto_min=1s is tcp:rto_min=1s",
            "a: sctp sctp.rto_min=200ms tcp.rto_min=200ms is sctp:rto_min=200ms",
            "a: sctp sctp.rto_min=1s tcp.rto_min=1s is sctp:rto_min=1s",
            "a: quic is quic",
        ];
        assert_eq!(points(text).unwrap(), expected);
    }

    #[test]
    fn an_option_comes_from_the_command_line_too() {
        let text = "transports = ['tcp', 'quic']\n[sweep]\n'tcp.cc' = ['bbr', 'cubic']";
        let mut source = Source::new("a", text);
        source.set("--set tcp.cc=newreno", "tcp.cc", "\"newreno\"").unwrap();
        let experiment = Experiment::parse("a", &source).unwrap();
        assert_eq!(experiment.points[0].to_string(), "a: tcp");
        assert_eq!(experiment.points[0].transport.option_values()["congestion"].as_str(), Some("reno"));
    }

    #[test]
    fn options_that_cannot_be_swept_are_refused_with_their_position() {
        let of = |transports: &str, sweep: &str| {
            points(&format!("transports = [{transports}]\n[sweep]\n{sweep}")).unwrap_err()
        };
        let problem = of("'sctp:rto_min=1s'", "'sctp.rto_min' = ['100ms']");
        assert!(problem.starts_with("a:3:") && problem.contains("already sets rto_min"), "{problem}");
        assert!(of("'tcp:congestion=bbr'", "'tcp.cc' = ['bbr']").contains("already sets cc"));
        assert!(of("'tcp'", "'sctp.rto_min' = ['100ms']").contains("no transport of the experiment is sctp"));
        let problem = of("'sctp'", "'sctp.rto_mi' = ['100ms']");
        assert!(problem.starts_with("a:3:") && problem.contains("rto_min"), "{problem}");
        let problem = points("transports = ['sctp']\n[sctp]\nrto_min = '1s'").unwrap_err();
        assert!(problem.contains("unknown key \"sctp\""), "{problem}");
    }
}
