//! Defaults of classes: `Agent/TCP set window_ 20` applies to agents that are created after it.

use std::collections::BTreeMap;

use crate::ns_defaults::{default_of, nearest_default};
use crate::simulator::{ENTRY_OCTETS, Outcome, Simulator};
use crate::tcl::{MEASURED_VALUE, Word, WordError};

/// The default attributes that a script sets for classes, by class and attribute.
#[derive(Debug, Default)]
pub(crate) struct Defaults(BTreeMap<String, BTreeMap<String, Word>>);

impl Defaults {
    /// Returns the defaults that the script sets for objects of a class. A default of the class takes precedence over
    /// those of its superclasses; ns's own default of a nearer class does, too.
    fn for_class(&self, class: &str) -> BTreeMap<String, Word> {
        let ends = class.match_indices('/').map(|(end, _)| end).chain([class.len()]);
        let above = ends.filter_map(|end| Some((end, self.0.get(&class[..end])?)));
        let all = above.flat_map(|(end, values)| values.iter().map(move |(name, value)| (end, name, value)));
        let is_nearest =
            |end: usize, name: &str| nearest_default(class, name).is_none_or(|(near, _)| near.len() <= end);
        let own = all.filter(|(end, name, _)| is_nearest(*end, name));
        own.map(|(_, name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the default that the script sets for one attribute of objects of a class.
    fn get(&self, class: &str, attribute: &str) -> Option<&Word> {
        let ends = class.match_indices('/').map(|(end, _)| end).chain([class.len()]).rev();
        let mut values = ends.filter_map(|end| Some((end, self.0.get(&class[..end])?.get(attribute)?)));
        let (end, value) = values.next()?;
        nearest_default(class, attribute).is_none_or(|(near, _)| near.len() <= end).then_some(value)
    }
}

/// The effect of the attributes that a script sets for a class.
enum Class {
    /// The attributes are read when an object of the class, or of a subclass, is created.
    Read,
    /// The attributes have no effect on hol's results, for this reason.
    Ignored(&'static str),
}

const CLASSES: [(&str, Class); 18] = [
    ("Agent", Class::Read),
    ("Application", Class::Read),
    ("Queue", Class::Read),
    ("ErrorModel", Class::Read),
    ("Trace", Class::Ignored("it only records")),
    ("CMUTrace", Class::Ignored("it only records")),
    ("QueueMonitor", Class::Ignored("it only records")),
    ("Animator", Class::Ignored("it only draws")),
    ("DelayLink", Class::Ignored("links of hol keep the order of packets, and have a rate and a delay")),
    ("AddrParams", Class::Ignored("hol chooses the addresses")),
    ("LL", Class::Ignored("links of hol have no such layer")),
    ("Mac", Class::Ignored("LANs of hol have no such layer")),
    ("Channel", Class::Ignored("LANs of hol have no such layer")),
    ("RNG", Class::Ignored("ns reads no such attribute")),
    ("RandomVariable", Class::Read),
    ("Scheduler", Class::Ignored("how events are stored does not change results")),
    ("Scheduler/RealTime", Class::Ignored("how events are stored does not change results")),
    ("Simulator", Class::Ignored("the command only changes internals of ns")),
];

impl Simulator<'_> {
    /// Returns the attributes of a new object of a class. The object keeps them if the script later changes those of
    /// the class.
    pub(crate) fn defaults_of(
        &mut self,
        class: &str,
        at: usize,
    ) -> Result<BTreeMap<String, Word>, WordError> {
        let own = self.defaults.for_class(class);
        self.charge_memory(
            at,
            own.iter().map(|(name, value)| ENTRY_OCTETS + name.len() + value.text.len()).sum(),
        )?;
        Ok(own)
    }

    /// Executes `CLASS set attribute value`, or `CLASS set attribute`, which returns the value; `None` for an unknown
    /// class.
    pub(crate) fn class_attribute(&mut self, words: &[Word]) -> Option<Outcome> {
        let [class, set, attribute, value @ ..] = words else { return None };
        if set.text != "set" || value.len() > 1 {
            return None;
        }
        let top = class.text.split('/').next().unwrap_or_default();
        let Some((_, kind)) = CLASSES.iter().find(|(known, _)| *known == top) else {
            let is_class = class.text.starts_with(|c: char| c.is_ascii_uppercase());
            let problem = format!(
                "defaults of {:?} are not supported; supported are those of agents, applications and queues",
                class.text
            );
            return is_class.then(|| self.unknown(class.at, problem));
        };
        let value = match (kind, value.first()) {
            (Class::Ignored(_), None) => return Some(Ok(MEASURED_VALUE.to_owned())),
            (Class::Ignored(reason), Some(_)) => return Some(self.ignore(words, reason)),
            (Class::Read, value) => value,
        };
        if let Some(value) = value {
            let own = self.defaults.0.entry(class.text.clone()).or_default();
            own.insert(attribute.text.clone(), value.clone());
            return Some(Ok(value.text.clone()));
        }
        let known = self.defaults.get(&class.text, &attribute.text).map(|value| value.text.clone());
        let known = known.or_else(|| default_of(&class.text, &attribute.text).map(str::to_owned));
        Some(Ok(known.unwrap_or_else(|| MEASURED_VALUE.to_owned())))
    }
}
