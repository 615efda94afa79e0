//! The options after the colon of a specification.

use std::fmt;
use std::str::FromStr;

use hol_base::{nearest_word, rewrite_parse_error};
use hol_quic::MessageMapping;
use hol_transport::Reliability;
use serde::Deserialize;
use serde::de::IntoDeserializer;

use crate::metrics_cache::MetricsCache;
use crate::{ProtocolKind, SocketStyle, SpecError, Tls};

/// Returns the canonical name of an option. Users may also write another name: `cc` as in iperf3 and ss,
/// `accecn` as in RFC 9768, or a former name.
pub fn canonical_option_name(written: &str) -> &str {
    match written {
        "cc" => "congestion",
        "accecn" => "accurate_ecn",
        "asconf_keeps_lookup" => "asconf_keeps_lookup_address",
        name => name,
    }
}

/// The options of a specification, in the order in which they are written. Reading an option removes it.
pub(crate) struct Options(Vec<(String, Option<String>)>);

impl Options {
    pub(crate) fn split(text: &str) -> Result<Self, SpecError> {
        let mut options: Vec<(String, Option<String>)> = Vec::new();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value.trim().to_owned())),
                None => (option, None),
            };
            let key = canonical_option_name(key.trim());
            if options.iter().any(|(known, _)| known == key) {
                return Err(SpecError::Repeated(key.to_owned()));
            }
            options.push((key.to_owned(), value));
        }
        Ok(Self(options))
    }

    /// Replaces the name of RFC 5681's congestion control by `own`, the name that the protocol uses:
    /// Reno in Linux' TCP, `NewReno` in QUIC (RFC 9002). Users may write either name with every
    /// protocol.
    pub(crate) fn with_reno_renamed(mut self, own: &str) -> Self {
        let is_reno = |value: &&mut String| ["reno", "newreno"].contains(&value.as_str());
        let values = self.0.iter_mut().filter(|(key, _)| key == "congestion");
        values
            .filter_map(|(_, value)| value.as_mut())
            .filter(is_reno)
            .for_each(|value| own.clone_into(value));
        self
    }

    fn take_option(&mut self, key: &str) -> Option<Option<String>> {
        let index = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(index).1)
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<String> {
        self.take_option(key).flatten()
    }

    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, SpecError> {
        match self.take_option(key) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(value)) => parse(key, &value),
        }
    }

    pub(crate) fn parse_or(
        &mut self,
        key: &str,
        default: u16,
        range: std::ops::RangeInclusive<u16>,
    ) -> Result<u16, SpecError> {
        let Some(value) = self.take_option(key) else { return Ok(default) };
        let value = value.ok_or_else(|| SpecError::MissingValue(key.to_owned()))?;
        let number = parse(key, &value)?;
        if range.contains(&number) {
            return Ok(number);
        }
        let problem = format!("must be between {} and {}", range.start(), range.end());
        Err(SpecError::BadValue { key: key.to_owned(), value, problem })
    }

    /// Applies the option `nagle`: `nagle` and `nagle=on` select the stack's variant of Nagle's
    /// algorithm.
    pub(crate) fn apply_nagle_option(&mut self, own: Option<toml::Value>, values: &mut toml::Table) {
        let Some(index) = self.0.iter().position(|(key, _)| key == "nagle") else { return };
        match self.0[index].1.as_deref() {
            None | Some("on" | "true") => values.extend(own.map(|own| ("nagle".to_owned(), own))),
            Some("off" | "false") => {}
            // A named variant is read like other options.
            Some(_) => return,
        };
        self.0.remove(index);
    }

    /// Reads the option `metrics_cache`; without a value it means Linux's default.
    pub(crate) fn metrics_cache(&mut self) -> Result<MetricsCache, SpecError> {
        match self.take_option("metrics_cache") {
            None => Ok(MetricsCache::Off),
            Some(None) => Ok(MetricsCache::On),
            Some(Some(value)) => parse("metrics_cache", &value),
        }
    }

    /// Reads the option `tls`; without a value it means a full handshake.
    pub(crate) fn tls(&mut self) -> Result<Option<Tls>, SpecError> {
        match self.take_option("tls") {
            None => Ok(None),
            Some(None) => Ok(Some(Tls::Full)),
            Some(Some(value)) if value == "false" => Ok(None),
            Some(Some(value)) => parse("tls", &value).map(Some),
        }
    }

    pub(crate) fn socket_style(&mut self) -> Result<SocketStyle, SpecError> {
        match self.take_option("socket") {
            None => Ok(SocketStyle::default()),
            Some(None) => Err(SpecError::MissingValue("socket".to_owned())),
            Some(Some(value)) => parse("socket", &value),
        }
    }

    pub(crate) fn mapping(&mut self) -> Result<MessageMapping, SpecError> {
        match (self.flag("per_message")?, self.flag("datagrams")?) {
            (false, false) => Ok(MessageMapping::Streams),
            (true, false) => Ok(MessageMapping::PerMessage),
            (false, true) => Ok(MessageMapping::Datagrams),
            (true, true) => Err(SpecError::BadValue {
                key: "per_message".to_owned(),
                value: "true".to_owned(),
                problem: "per_message and datagrams exclude each other; remove one".to_owned(),
            }),
        }
    }

    pub(crate) fn reliability(&mut self) -> Result<Reliability, SpecError> {
        match (self.take("lifetime"), self.take("retransmissions")) {
            (None, None) => Ok(Reliability::Full),
            (Some(value), None) => Ok(Reliability::Lifetime(parse("lifetime", &value)?)),
            (None, Some(value)) => Ok(Reliability::Retransmissions(parse("retransmissions", &value)?)),
            (Some(value), Some(_)) => Err(SpecError::BadValue {
                key: "lifetime".to_owned(),
                value,
                problem: "lifetime and retransmissions exclude each other; remove one".to_owned(),
            }),
        }
    }

    /// Applies the remaining options to the stack's defaults, and reads the configuration from the
    /// result.
    pub(crate) fn into_config<C: for<'de> Deserialize<'de>>(
        self,
        kind: ProtocolKind,
        values: &mut toml::Table,
    ) -> Result<C, SpecError> {
        let mut last = None;
        for (key, value) in self.0 {
            let Some(known) = values.get(&key) else { return Err(unknown(kind, key, values)) };
            let value = match (value, known) {
                (Some(value), known) => parse_as(&value, known),
                (None, toml::Value::Boolean(_)) => toml::Value::Boolean(true),
                (None, _) => return Err(SpecError::MissingValue(key)),
            };
            values.insert(key.clone(), value.clone());
            // Each option is read separately first, so that an error can name it.
            read::<C>(values).map_err(|problem| bad_value(&key, &value, problem))?;
            last = Some((key, value));
        }
        read(values).map_err(|problem| match last {
            Some((key, value)) => bad_value(&key, &value, problem),
            None => unreachable!("a stack that comes with the program is broken: {problem}"),
        })
    }
}

fn read<C: for<'de> Deserialize<'de>>(values: &toml::Table) -> Result<C, String> {
    C::deserialize(values.clone().into_deserializer())
        .map_err(|e: toml::de::Error| rewrite_parse_error(e.message()))
}

/// Converts the text of an option to a TOML value of the same type as in the stack file, if possible.
fn parse_as(text: &str, like: &toml::Value) -> toml::Value {
    let number = text.parse().ok().map(toml::Value::Integer);
    let boolean = text.parse().ok().map(toml::Value::Boolean);
    let value = match like {
        toml::Value::Integer(_) => number,
        toml::Value::Boolean(_) => boolean,
        toml::Value::Float(_) => text.parse().ok().map(toml::Value::Float),
        _ => None,
    };
    value.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

fn parse<T: FromStr<Err: fmt::Display>>(key: &str, value: &str) -> Result<T, SpecError> {
    value.parse().map_err(|problem: T::Err| SpecError::BadValue {
        key: key.to_owned(),
        value: value.to_owned(),
        problem: problem.to_string(),
    })
}

pub(crate) fn bad_value(key: &str, value: &toml::Value, problem: String) -> SpecError {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    SpecError::BadValue { key: key.to_owned(), value, problem }
}

/// TCP's congestion control algorithms, whose names can be written like options.
const CONGESTION_CONTROLS: [&str; 6] = ["bbr", "bbr3", "cubic", "dctcp", "prague", "reno"];

fn unknown(kind: ProtocolKind, key: String, values: &toml::Table) -> SpecError {
    let uses = kind.application_options().iter().map(|(name, _)| *name);
    let known: Vec<&str> = uses.chain(["stack"]).chain(values.keys().map(String::as_str)).collect();
    let hint = match nearest_word(&key, known.iter().copied()) {
        _ if matches!(kind, ProtocolKind::Tcp | ProtocolKind::Mptcp)
            && CONGESTION_CONTROLS.contains(&key.as_str()) =>
        {
            format!("; write cc={key}, as in {}:cc={key}", kind.name())
        }
        Some(near) => format!("; did you mean {near:?}?"),
        None => format!("; known are {}", known.join(", ")),
    };
    SpecError::UnknownOption { transport: kind.name(), key, hint }
}
