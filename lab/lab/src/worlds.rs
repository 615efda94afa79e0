//! The list of worlds, by their names in experiments.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use hol_kernel::{Image, Kernel};
use hol_live::{Live, NAMESPACES, Namespaces};
use hol_model::Model;
use hol_scenario::{RunError, World};
use serde::{Deserialize, Serialize};

/// Function that creates a world of a family. Its argument is the part of the world's name after the colon.
type Make = fn(&str) -> Result<Arc<dyn World>, RunError>;

/// All families of worlds; the first one is the default. To add a family, add a line here.
const FAMILIES: [(&str, Make); 3] = [("model", |_| Ok(Arc::new(Model))), ("kernel", kernel), ("live", live)];

fn kernel(release: &str) -> Result<Arc<dyn World>, RunError> {
    Ok(Arc::new(Kernel::find(release)?))
}

fn live(variant: &str) -> Result<Arc<dyn World>, RunError> {
    match variant {
        "" => Ok(Arc::new(Live::new())),
        NAMESPACES => Ok(Arc::new(Namespaces::new())),
        peer => Ok(Arc::new(Live::with_peer(peer).map_err(RunError::Refused)?)),
    }
}

/// The name of a world: `"model"`; `"kernel"`, `"kernel:6.1"` for a certain version, `"kernel:uml"` for
/// User-Mode Linux; `"live"` on this machine over loopback, `"live:namespaces"` over an emulated path on
/// this machine, `"live:HOST"` to another machine that runs `hol live serve`,
/// `"live:server=HOST,cross=OTHER"` between several machines, by node, `"live:HOST via ROUTER"` over a
/// router that runs `hol live route`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorldName(String);

impl Default for WorldName {
    fn default() -> Self {
        Self(FAMILIES[0].0.to_owned())
    }
}

impl WorldName {
    /// Creates the name of a world: a variant of a family, or the family's default world if `variant` is empty.
    pub fn of(family: &str, variant: &str) -> Self {
        Self(if variant.is_empty() { family.to_owned() } else { format!("{family}:{variant}") })
    }

    /// Returns the best world for programs: User-Mode Linux, in which computing takes no virtual time, if its
    /// kernel has been built; otherwise the default kernel.
    pub fn of_programs() -> Self {
        Self::of("kernel", if Image::list().iter().any(Image::is_user_mode) { "uml" } else { "" })
    }

    /// Returns whether this is the default world.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the part of the name before the colon.
    pub fn family(&self) -> &str {
        self.0.split_once(':').map_or(self.0.as_str(), |(family, _)| family)
    }

    /// Returns the part of the name after the colon; empty if there is no colon.
    pub fn variant(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, variant)| variant)
    }

    /// Returns the world of this name. It is created once and shared.
    pub fn open(&self) -> Result<Arc<dyn World>, RunError> {
        static OPEN_WORLDS: Mutex<Vec<(WorldName, Arc<dyn World>)>> = Mutex::new(Vec::new());
        let mut open = OPEN_WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, world)) = open.iter().find(|(name, _)| name == self) {
            return Ok(Arc::clone(world));
        }
        let made = self.make()?;
        // A short name and the full one denote the same world.
        let whole = Self(made.name());
        let known = open.iter().find(|(name, _)| *name == whole).map(|(_, world)| Arc::clone(world));
        let world = known.unwrap_or(made);
        open.push((self.clone(), Arc::clone(&world)));
        if whole != *self {
            open.push((whole, Arc::clone(&world)));
        }
        Ok(world)
    }

    fn make(&self) -> Result<Arc<dyn World>, RunError> {
        let (family, variant) = self.0.split_once(':').unwrap_or((&self.0, ""));
        match FAMILIES.iter().find(|(name, _)| *name == family) {
            Some((_, make)) if !self.0.ends_with(':') => make(variant),
            _ => {
                let known: Vec<String> = FAMILIES.iter().map(|(name, _)| format!("{name:?}")).collect();
                let problem = format!("unknown world {:?}; known: {}", self.0, known.join(", "));
                Err(RunError::Refused(problem))
            }
        }
    }
}

impl FromStr for WorldName {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for WorldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_has_a_family_and_the_default_is_the_model() {
        let kernel: WorldName = "kernel:6.1.0-54-amd64".parse().unwrap_or_default();
        assert_eq!((kernel.family(), kernel.to_string().as_str()), ("kernel", "kernel:6.1.0-54-amd64"));
        assert!(WorldName::of("model", "").is_default() && !kernel.is_default());
        assert_eq!(WorldName::default().open().unwrap().name(), "model");
    }

    #[test]
    fn an_unknown_world_is_refused_with_a_list() {
        let problem = WorldName::of("live", "10.0.0.1:x").open().unwrap_err().to_string();
        assert!(problem.contains("10.0.0.1:x") && problem.contains("HOST:PORT"), "{problem}");
        for name in ["matrix", "kernel:", "live:", ""] {
            let problem = WorldName(name.to_owned()).open().unwrap_err().to_string();
            assert!(problem.contains(&format!("{name:?}")) && problem.contains("\"kernel\""), "{problem}");
        }
    }
}
