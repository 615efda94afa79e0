//! The resources of a machine that an experiment may use.

use std::fs;
use std::path::{Component, Path, PathBuf};

use hol_network::NetworkSpec;
use serde::{Deserialize, Serialize};

use crate::worlds::WorldName;

/// The prefix of names of files that belong to the project.
pub const PROJECT_PREFIX: &str = "project:";

/// The family of worlds that use sockets of this machine.
const LIVE_WORLD: &str = "live";

/// The resources of this machine that an experiment may use. By default it may use everything; a public server
/// permits less. The permission is checked with the values of each point, before any file is opened and any world
/// is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// Whether the experiment may run programs and choose a root file system for them. Both use files of this
    /// machine.
    pub programs: bool,
    /// Names of the `live` worlds that the experiment may use; `None` permits all of them.
    pub live: Option<Vec<String>>,
    /// The largest permitted number of nodes.
    pub nodes: usize,
    /// The largest permitted number of paths, links and LANs.
    pub links: usize,
    /// The largest permitted number of points.
    pub points: usize,
    /// The largest permitted number of routes in all points together.
    pub routes: usize,
    /// The largest permitted total size, in octets, of the files that the experiment names. A file counts each time a
    /// point reads it.
    pub file_octets: usize,
    /// The directory of the files that the experiment names as `project:PATH`; by default `project` next to the experiment file.
    pub project: Option<PathBuf>,
}

impl Default for Permission {
    fn default() -> Self {
        Self {
            programs: true,
            live: None,
            nodes: usize::MAX,
            links: usize::MAX,
            points: usize::MAX,
            routes: usize::MAX,
            file_octets: usize::MAX,
            project: None,
        }
    }
}

impl Permission {
    /// Checks that the world of a point is permitted.
    pub(crate) fn check_world(&self, world: &WorldName) -> Result<(), String> {
        let is_granted = |live: &Vec<String>| live.contains(&world.to_string());
        if world.family() != LIVE_WORLD || self.live.as_ref().is_none_or(is_granted) {
            return Ok(());
        }
        Err(format!(
            "the world \"{world}\" would send packets from this server's machine; use \"model\" or \"kernel\", or ask the operator to \
            start the server with --live \"{world}\""
        ))
    }

    /// Checks that the total size of the files read so far is permitted.
    pub(crate) fn check_file_octets(&self, octets: usize) -> Result<(), String> {
        if octets <= self.file_octets {
            return Ok(());
        }
        let max = self.file_octets;
        let cure = "sweep fewer values, shorten the file, or use `hol run` on your own machine";
        Err(format!("all points together read files of more than {max} octets; {cure}"))
    }

    /// Checks that the number of points read so far, and the number of their routes, are permitted.
    pub(crate) fn check_point_count(&self, points: usize, routes: usize) -> Result<(), String> {
        let cure = "sweep fewer values, or use `hol run` on your own machine";
        if points > self.points {
            return Err(format!("the experiment has more than {} points; {cure}", self.points));
        }
        if routes > self.routes {
            return Err(format!("the networks of all points have more than {} routes; {cure}", self.routes));
        }
        Ok(())
    }

    /// Checks that the size of a network is permitted, before its routes are computed. There is one route from
    /// every node to every address.
    pub fn check_network(&self, network: &NetworkSpec) -> Result<(), String> {
        let links = network.paths.len() + network.links.len() + network.lans.len();
        let members: usize = network.lans.iter().map(|lan| lan.nodes.len()).sum();
        let Self { nodes: max_nodes, links: max_links, .. } = self;
        let cure = "use a smaller network, or `hol run` on your own machine";
        if network.nodes.len() > *max_nodes {
            let nodes = network.nodes.len();
            return Err(format!(
                "the network has {nodes} nodes, but at most {max_nodes} are allowed; {cure}"
            ));
        }
        if links.max(members / 2) > *max_links {
            return Err(format!(
                "the network has {links} links and LANs with {members} stations, but at most {max_links} links and LANs with {} stations are \
                 allowed; {cure}",
                2 * max_links + 1
            ));
        }
        Ok(())
    }
}

/// Returns the path of a file that an experiment names as `project:PATH`. The file must be within `directory`, even
/// after its symbolic links are followed. `None` if the name has no such prefix.
pub(crate) fn project_file(name: &Path, directory: Option<&Path>) -> Option<Result<PathBuf, String>> {
    let path = Path::new(name.to_str()?.strip_prefix(PROJECT_PREFIX)?);
    let leads_down = path.components().all(|part| matches!(part, Component::Normal(_)));
    let whole = || {
        let directory = fs::canonicalize(directory?).ok()?;
        let whole = fs::canonicalize(directory.join(path)).ok()?;
        (leads_down && whole.starts_with(directory) && whole.is_file()).then_some(whole)
    };
    Some(whole().ok_or_else(|| {
        let cure = "upload the file, or put it into the directory `project` beside the experiment";
        format!("{:?}: not found among the files of the project; {cure}", name.display().to_string())
    }))
}

/// Returns the number of routes in a network; there is one from every node to every address.
pub(crate) fn count_routes(network: &NetworkSpec) -> usize {
    let stations: usize = network.lans.iter().map(|lan| lan.nodes.len()).sum();
    let lines = (network.paths.len() + network.links.len()).max(1);
    network.nodes.len().max(2) * (2 * lines + stations)
}
