//! Where runs take place.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use hol_kernel::{Image, KernelError};
use hol_model::Scenario;
use serde::{Deserialize, Serialize};

/// Where runs take place: `"model"`, `"kernel"`, or `"kernel:6.1"` for a certain one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum World {
    /// Our endpoints on simulated links.
    #[default]
    Model,
    /// A Linux kernel in a virtual machine: how its release begins, empty for the one to use by default.
    Kernel(String),
    /// There is no such world.
    Unknown(String),
}

impl World {
    /// Whether it is the one that everything else is compared with.
    pub fn is_model(&self) -> bool {
        *self == Self::Model
    }

    /// The same world with its whole name, or why there is none.
    pub(crate) fn settled(&self) -> Result<Self, String> {
        match self {
            Self::Model => Ok(Self::Model),
            Self::Kernel(release) => {
                let image = find(release).map_err(|problem| problem.to_string())?;
                Ok(Self::Kernel(image.release))
            }
            Self::Unknown(name) => Err(format!("unknown world {name:?}; there are \"model\" and \"kernel\"")),
        }
    }

    /// The kernel that this world is, booted; `None`: it is the model.
    pub fn kernel(&self) -> Result<Option<hol_kernel::World>, KernelError> {
        match self {
            Self::Kernel(release) => booted(release).map(Some),
            Self::Model | Self::Unknown(_) => Ok(None),
        }
    }

    /// Refuses what this world cannot do.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        match self {
            Self::Kernel(release) => {
                let possible = find(release).and_then(|image| hol_kernel::check(scenario, &image));
                possible.map_err(|problem| problem.to_string())
            }
            Self::Model => hol_model::check(scenario).map_err(|problem| problem.to_string()),
            Self::Unknown(_) => Ok(()),
        }
    }
}

fn find(release: &str) -> Result<Image, KernelError> {
    Image::find(Some(release).filter(|release| !release.is_empty()))
}

/// The kernel world of `release`; it boots at the first call, and others wait for that.
pub(crate) fn booted(release: &str) -> Result<hol_kernel::World, KernelError> {
    static BOOTED: Mutex<Vec<hol_kernel::World>> = Mutex::new(Vec::new());
    let mut booted = BOOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(world) = booted.iter().find(|world| world.image().release == release) {
        return Ok(world.clone());
    }
    let world = hol_kernel::World::open(find(release)?, None)?;
    booted.push(world.clone());
    Ok(world)
}

impl From<String> for World {
    fn from(text: String) -> Self {
        match text.split_once(':') {
            None if text == "model" => Self::Model,
            None if text == "kernel" => Self::Kernel(String::new()),
            Some(("kernel", release)) => Self::Kernel(release.to_owned()),
            _ => Self::Unknown(text),
        }
    }
}

impl From<World> for String {
    fn from(world: World) -> Self {
        world.to_string()
    }
}

impl FromStr for World {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.to_owned().into())
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("model"),
            Self::Kernel(release) if release.is_empty() => f.write_str("kernel"),
            Self::Kernel(release) => write!(f, "kernel:{release}"),
            Self::Unknown(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_are_written_as_they_are_read() {
        for text in ["model", "kernel", "kernel:6.1.0-54-amd64", "matrix"] {
            let world: World = text.parse().unwrap_or_default();
            assert_eq!(world.to_string(), text);
        }
    }

    #[test]
    fn an_unknown_world_is_refused_with_those_there_are() {
        let problem = World::Unknown("matrix".to_owned()).settled().unwrap_err();
        assert!(problem.contains("\"matrix\"") && problem.contains("\"kernel\""), "{problem}");
    }
}
