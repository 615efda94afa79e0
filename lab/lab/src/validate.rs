//! Runs the same points in two worlds: a Linux kernel, and the model that is validated against it.

use std::io;
use std::path::Path;

use hol_base::Digester;
use hol_stack::DEFAULT_STACK;

use crate::error::{InputError, LabError};
use crate::experiment::Experiment;
use crate::manifest::Manifest;
use crate::point::Point;
use crate::repetitions::Repetitions;
use crate::worlds::WorldName;

/// Number of repetitions in the model for each one in the kernel. With this number the model's own uncertainty is
/// negligible. A repetition in the kernel takes several hundred times as long as one in the model.
const MODEL_REPETITIONS: u32 = 10;

/// The same experiments in two worlds, point by point.
#[derive(Debug, Clone)]
pub struct BothWorlds {
    /// The experiments in the kernel world.
    pub kernel: Vec<Experiment>,
    /// The same points in the same order in the model world, with more repetitions.
    pub model: Vec<Experiment>,
    /// A description of each point that was left out, and the reason.
    pub refused: Vec<String>,
}

impl BothWorlds {
    /// Selects the points of `experiments` that have the kernel's stack and that both the model and `world` support.
    pub fn of(experiments: Vec<Experiment>, world: &WorldName) -> Result<Self, InputError> {
        let mut both = Self { kernel: Vec::new(), model: Vec::new(), refused: Vec::new() };
        for mut experiment in experiments {
            experiment.points.retain(|point| point.transport.stack() == DEFAULT_STACK);
            let (experiment, not_in_model) = experiment.in_world(&WorldName::default())?;
            let (kernel, not_in_kernel) = experiment.in_world(world)?;
            let (model, _) = kernel.clone().in_world(&WorldName::default())?;
            both.model.push(model.with_repetitions(|Repetitions { min, max }| Repetitions {
                min: min * MODEL_REPETITIONS,
                max: max * MODEL_REPETITIONS,
            }));
            both.kernel.push(kernel);
            both.refused.extend(not_in_model.into_iter().chain(not_in_kernel));
        }
        Ok(both)
    }
}

impl Experiment {
    /// Returns the experiment with another number of repetitions. The length of a repetition and the first repetitions
    /// stay the same.
    pub fn with_repetitions(mut self, change: impl Fn(Repetitions) -> Repetitions) -> Self {
        for point in &mut self.points {
            let repetitions = change(point.repetitions);
            // Messages that cannot be divided evenly would lengthen the first repetitions.
            point.messages = point.messages / u64::from(point.repetitions.min) * u64::from(repetitions.min);
            point.repetitions = repetitions;
            point.id = point.identity();
        }
        self
    }
}

impl Point {
    /// Returns whether `key` has this `value` at the point; `None` if the point has no such key.
    ///
    /// The key is `experiment`, `transport` (its value is the label or the specification), a swept key, or the
    /// last part of a swept key.
    pub fn has_key_value(&self, key: &str, value: &str) -> Option<bool> {
        match key {
            "experiment" => Some(self.experiment == value),
            "transport" => Some(self.label == value || self.transport.to_string() == value),
            _ => {
                let named = |name: &str| name == key || name.rsplit('.').next() == Some(key);
                let axis = self.axes.iter().find(|(name, _)| named(name));
                axis.map(|(_, written)| written == value)
            }
        }
    }
}

impl Manifest {
    /// Makes the manifest valid only for this build of the program, by adding the build to its version.
    pub fn pinned_to_this_build(mut self) -> Result<Self, LabError> {
        let read = || std::env::current_exe().and_then(std::fs::read);
        let octets = read().map_err(|e: io::Error| LabError::file("read", Path::new("this program"), e))?;
        let mut digester = Digester::new();
        digester.add_octets(&octets);
        self.version = format!("{}+{:.8}", self.version, digester.finish().to_string());
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn experiment(text: &str) -> Experiment {
        Experiment::parse("exp1", &Source::new("exp1.toml", text)).unwrap()
    }

    #[test]
    fn added_repetitions_keep_the_length_and_the_seeds() {
        let few = experiment("transports = ['tcp']\nmessages = 1003\nrepetitions = 5");
        let many = few.clone().with_repetitions(|_| Repetitions::fixed(50));
        let (few, many) = (&few.points[0], &many.points[0]);
        assert_eq!(many.repetitions, Repetitions::fixed(50));
        assert!((0..50).all(|repetition| many.messages_in(repetition) == 200));
        assert_eq!(few.seed_of(4), many.seed_of(4));
    }

    #[test]
    fn points_are_found_by_experiment_transport_and_swept_keys() {
        let text =
            "transports = [{ spec = 'sctp:streams=8', label = 'SCTP-8' }]\n[sweep]\n'network.loss' = ['1%']";
        let point = &experiment(text).points[0];
        for (key, value) in [
            ("experiment", "exp1"),
            ("transport", "SCTP-8"),
            ("transport", "sctp:streams=8"),
            ("loss", "1%"),
            ("network.loss", "1%"),
        ] {
            assert_eq!(point.has_key_value(key, value), Some(true), "{key}");
            assert_eq!(point.has_key_value(key, "x"), Some(false), "{key}");
        }
        assert_eq!(point.has_key_value("work", "1%"), None);
    }
}
