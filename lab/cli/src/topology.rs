//! `hol topology`: draws a network, and lists its nodes and links.

use std::path::{Path, PathBuf};

use clap::Args;
use hol_lab::{Experiment, LabError, Source, is_script, text_from_octets};
use hol_network::{NetworkSpec, Topology as Network};
use hol_report::topology;
use hol_testbed::{Script, emulab_tables, write};

use crate::failure::Failure;
use crate::tc;
use crate::terminal::{note, print, table};

/// Draw the network of an ns script or an experiment, and print its addresses and links.
///
/// Reads scripts of ns-2 and Emulab. Commands that have no effect here are listed as ignored.
#[derive(Debug, Args)]
pub struct Topology {
    /// An ns script, or an experiment file (*.toml)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write an SVG drawing; - is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write an ns script; - is standard output
    #[arg(long, value_name = "FILE")]
    ns: Option<PathBuf>,
    /// Write a shell script of tc commands that emulates these links on a router; for a sweep, the links of the first
    /// point; - is standard output
    #[arg(long, value_name = "FILE")]
    tc: Option<PathBuf>,
}

impl Topology {
    /// Reads the network, draws it and writes the lists.
    pub fn run(&self) -> Result<(), Failure> {
        let (network, ignored) = self.network()?;
        let place = self.file.display();
        let network = Network::new(&network).map_err(|e| Failure::Usage(format!("{place}: {e}")))?;
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let tc = self.tc.as_ref().map(|_| tc::script(&network, &self.file.display().to_string()));
        let tc = tc.transpose().map_err(|problem| Failure::Usage(format!("{place}: --tc: {problem}")))?;
        let picture = || topology::draw("topology", &name, &network).standalone();
        let asked = [
            (&self.tc, tc),
            (&self.ns, self.ns.as_ref().map(|_| write(&network))),
            (&self.svg, self.svg.as_ref().map(|_| picture())),
        ];
        let mut for_standard_output = Vec::new();
        for (path, text) in asked.iter().filter_map(|(path, text)| Some((path.as_ref()?, text.as_ref()?))) {
            if path == Path::new("-") {
                for_standard_output.push(text.as_str());
            } else {
                save(path, text)?;
            }
        }
        if !for_standard_output.is_empty() {
            print(&for_standard_output.concat());
            return Ok(());
        }
        let mut text = topology::text(&network);
        for section in emulab_tables(&network) {
            text += &format!("\n{}:\n{}", section.title, table(&section.rows));
        }
        if !ignored.is_empty() {
            text += &format!("\nIgnored:\n{}\n", ignored.join("\n"));
        }
        print(&text);
        Ok(())
    }

    /// Returns the network, and the commands of its script that hol ignores.
    fn network(&self) -> Result<(NetworkSpec, Vec<String>), Failure> {
        let read = |path: &Path| {
            let octets = std::fs::read(path).map_err(|e| LabError::file("read", path, e))?;
            let problem = |problem| Failure::Usage(format!("{}: {problem}", path.display()));
            text_from_octets(octets).map_err(problem)
        };
        let text = read(&self.file)?;
        if !is_script(&self.file, &text) {
            return self.network_of_experiment();
        }
        let beside = |name: &str| {
            let directory = self.file.parent().unwrap_or(Path::new(""));
            read(&directory.join(name)).map_err(|error| error.to_string())
        };
        let script = Script::read_with(&self.file.display().to_string(), &text, &beside, &|_| Ok(()));
        let script = script.map_err(|e| Failure::Usage(e.to_string()))?;
        Ok((script.network, script.ignored.iter().map(ToString::to_string).collect()))
    }

    fn network_of_experiment(&self) -> Result<(NetworkSpec, Vec<String>), Failure> {
        let source = Source::read(&self.file)?;
        let experiment = Experiment::parse("topology", &source)?;
        match experiment.points.into_iter().next() {
            Some(point) => Ok((point.network_of(0).into_owned(), experiment.ignored)),
            None => Err(Failure::Usage(format!("{}: the experiment has no points", self.file.display()))),
        }
    }
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| LabError::file("write", path, e))?;
    note!("{} written", path.display());
    Ok(())
}
