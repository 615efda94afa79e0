//! Studies: built-in experiments with figures and claims.

use std::collections::BTreeMap;

use crate::error::{InputError, LabError};
use crate::experiment::Experiment;
use crate::origin::sha256;
use crate::source::Source;

/// The files of a study: name and text of each, in order of name.
type Files = &'static [(&'static str, &'static str)];

include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// TOML files of a study that are not experiment files.
const NOT_EXPERIMENTS: [&str; 2] = ["claims.toml", "figures.toml"];

/// The reproduction of a published evaluation.
#[derive(Debug, Clone)]
pub struct Study {
    /// Name of the study, as in `hol reproduce ikr53`.
    pub name: &'static str,
    /// Title of the study: the heading of its README.md.
    pub title: &'static str,
    /// The experiments in order of name. [`Experiment::in_world`] removes the points that a world does not support.
    pub experiments: Vec<(String, Experiment)>,
    files: Files,
}

impl Study {
    /// Returns the name and title of every study.
    pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        STUDIES.iter().map(|(name, files)| (*name, title(name, files)))
    }

    /// Reads the study called `name`. If `quick`, its experiments have a twentieth of their messages.
    pub fn load(name: &str, quick: bool) -> Result<Self, LabError> {
        let Some((name, files)) = STUDIES.iter().find(|(known, _)| *known == name) else {
            let known = Self::all().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
            let problem = format!("unknown study; known: {known}");
            return Err(InputError { place: name.to_owned(), problem }.into());
        };
        let mut experiments = Vec::new();
        for (file, text) in files.iter().filter(|(file, _)| !NOT_EXPERIMENTS.contains(file)) {
            let Some(experiment) = file.strip_suffix(".toml") else { continue };
            let scripts = files.iter().filter(|(file, _)| file.ends_with(".ns"));
            let source = Source::new(format!("studies/{name}/{file}"), *text);
            let source = scripts.fold(source, |source, (script, text)| source.with_file(*script, *text));
            let (parsed, _) = Experiment::read(experiment, &source)?;
            experiments.push((experiment.to_owned(), if quick { parsed.quick() } else { parsed }));
        }
        Ok(Self { name, title: title(name, files), experiments, files })
    }

    /// Returns the text of one of the study's files, such as `claims.toml`.
    pub fn file(&self, name: &str) -> Option<&'static str> {
        text(self.files, name)
    }
}

/// Returns the SHA-256 of each file of a study, by path; empty if there is no such study.
pub(crate) fn hashes(name: &str) -> BTreeMap<String, String> {
    let files = STUDIES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, files)| files);
    files.iter().map(|(file, text)| (format!("studies/{name}/{file}"), sha256(text.as_bytes()))).collect()
}

/// Returns the title of a study: the heading of its README.md.
fn title(name: &'static str, files: Files) -> &'static str {
    let heading = text(files, "README.md").and_then(|readme| readme.lines().next());
    heading.map_or(name, |line| line.trim_start_matches(['#', ' ']))
}

fn text(files: Files, name: &str) -> Option<&'static str> {
    files.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_can_be_read() {
        for (name, _) in Study::all() {
            let study = Study::load(name, true).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(study.name, name);
        }
        assert!(Study::load("ikr35", false).unwrap_err().to_string().contains("known: "));
    }
}
