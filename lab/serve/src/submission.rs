//! Submissions: new experiments, changed texts, repetitions.

use std::collections::BTreeMap;

use hol_lab::{Permission, Source, Study};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::clock::now;
use crate::draft;
use crate::events::Kind;
use crate::experiment::{Experiment, Format, State};
use crate::lifecycle::{cure, holds_cores};
use crate::reading::{problem, read};
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::Server;
use crate::store::{NewExperiment, Text, is_disk_full};

/// Maximum unfinished experiments per user.
const MAX_UNFINISHED: u64 = 20_000;
const LONGEST_NAME: usize = 64;
const LONGEST_TITLE: usize = 200;
/// Maximum of `idle_swap`, in seconds.
const LONGEST_TIME: u32 = 366 * 86_400;
const MAX_URGENT: i64 = 1000;

/// A new experiment.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// An experiment file or an ns script.
    pub text: String,
    /// Which of the two.
    #[serde(default)]
    pub format: Format,
    /// Letters, digits, `-`, `_` and `.`; made from the title by default.
    pub name: Option<String>,
    /// The project; by default the user's first.
    pub project: Option<String>,
    /// Whether it waits for cores (default) instead of being rejected.
    pub batch: Option<bool>,
    /// Higher ones start first; -1000 to 1000, above 0 from the leader of the project only.
    pub priority: Option<i64>,
    /// Seconds without progress after which it is swapped out; 0: never.
    pub idle_swap: Option<u32>,
    /// Seconds after which it is swapped out in any case; 0: never.
    pub auto_swap: Option<u32>,
    /// Cores that it needs; all of the machine by default.
    pub cores: Option<u32>,
    /// Whether it is held until somebody starts it.
    #[serde(default)]
    pub hold: bool,
}

/// Changes of an experiment; absent fields stay.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// As in a submission.
    pub name: Option<String>,
    /// One line for people.
    pub title: Option<String>,
    /// As in a submission.
    pub batch: Option<bool>,
    /// As in a submission.
    pub priority: Option<i64>,
    /// As in a submission.
    pub idle_swap: Option<u32>,
    /// As in a submission.
    pub auto_swap: Option<u32>,
    /// As in a submission.
    pub cores: Option<u32>,
}

/// Another text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewText {
    /// An experiment file or an ns script.
    pub text: String,
    /// Which of the two.
    #[serde(default)]
    pub format: Format,
}

/// A repetition, with other values.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// Keys of the experiment with their values, as in `hol run --set`.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Another name.
    pub name: Option<String>,
    /// Whether it is held.
    #[serde(default)]
    pub hold: bool,
}

/// The options of a study's run.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyRun {
    /// A twentieth of the messages.
    #[serde(default)]
    pub quick: bool,
    /// As in a submission.
    pub project: Option<String>,
    /// As in a submission.
    pub priority: Option<i64>,
    /// As in a submission.
    pub cores: Option<u32>,
    /// As in a submission.
    #[serde(default)]
    pub hold: bool,
}

impl Server {
    /// Takes a new experiment.
    pub fn submit(&self, requester: &Requester, wanted: Submission) -> Result<Experiment, Refusal> {
        let called = wanted.name.clone().unwrap_or_else(|| "experiment".to_owned());
        check_name(&called)?;
        let (project, _) = self.project_of(requester, wanted.project.as_deref())?;
        let title = self.title_of(&called, &wanted.text, wanted.format, project)?;
        let name = wanted.name.clone().unwrap_or_else(|| name_of(&title));
        self.take(requester, name, title, None, wanted)
    }

    /// Reads a text and returns its title. It is an experiment of `project`, or a network without traffic.
    fn title_of(&self, name: &str, text: &str, format: Format, project: i64) -> Result<String, Refusal> {
        let permission = self.permission(project)?;
        let refusal = match read(name, text, format, &permission) {
            Ok(experiment) => return Ok(shortened(&experiment.title)),
            Err(refusal) => refusal,
        };
        let whole = draft::with_placeholder_traffic(text, format, &permission).ok_or(refusal)?;
        let experiment = read(name, &whole, format, &permission)?;
        if !permission.programs {
            return Err(Refusal::bad(
                "it has no traffic, and this server lets nobody use nodes by hand",
                "add traffic, or ask whoever runs the server to start it with --programs",
            ));
        }
        Ok(shortened(&experiment.title))
    }

    /// Takes a study that comes with the program.
    pub fn run_study(
        &self,
        requester: &Requester,
        name: &str,
        wanted: StudyRun,
    ) -> Result<Experiment, Refusal> {
        let (name, title) = Study::all().find(|(known, _)| *known == name).ok_or_else(Refusal::not_found)?;
        let StudyRun { quick, project, priority, cores, hold } = wanted;
        let submission = Submission { project, priority, cores, hold, ..Submission::default() };
        self.take(requester, name.to_owned(), title.to_owned(), Some((name, quick)), submission)
    }

    fn take(
        &self,
        requester: &Requester,
        name: String,
        title: String,
        study: Option<(&str, bool)>,
        wanted: Submission,
    ) -> Result<Experiment, Refusal> {
        let (project, leader) = self.project_of(requester, wanted.project.as_deref())?;
        if self.store.unfinished(requester.id)? >= MAX_UNFINISHED {
            let problem = format!(
                "{} has {MAX_UNFINISHED} unfinished experiments, the maximum; wait for one to end, or remove one",
                requester.name
            );
            return Err(Refusal::too_many(problem, 60));
        }
        let fresh = NewExperiment {
            name,
            title,
            project,
            owner: requester.id,
            state: if wanted.hold { State::New } else { State::Queued },
            priority: priority(wanted.priority.unwrap_or(0), 0, requester.id == leader)?,
            batch: wanted.batch.unwrap_or(true),
            cores: cores(wanted.cores.unwrap_or(self.config.cores))?,
            idle_swap: limit(wanted.idle_swap.unwrap_or(0))?,
            auto_swap: limit(wanted.auto_swap.unwrap_or(0))?,
            study: study.map(|(name, _)| name.to_owned()),
            quick: study.is_some_and(|(_, quick)| quick),
            text: wanted.text,
            format: wanted.format,
            now: now(),
        };
        let id = self.store.add(&fresh)?;
        let entry = self.entry(requester, id)?;
        self.hub.publish(id, entry.project, Kind::State, &entry.experiment);
        self.look();
        Ok(entry.experiment)
    }

    /// Applies changes that are possible at any time.
    pub fn change(&self, requester: &Requester, id: i64, change: Change) -> Result<Experiment, Refusal> {
        let entry = self.own(requester, id)?;
        let mut to = entry.experiment;
        if let Some(name) = change.name {
            check_name(&name)?;
            to.name = name;
        }
        if let Some(title) = change.title {
            to.title = shortened(&title);
        }
        if let Some(wanted) = change.cores {
            if holds_cores(to.state) && wanted != to.cores {
                return Err(Refusal::conflict("it is starting or running", "swap it out first"));
            }
            to.cores = cores(wanted)?;
        }
        to.batch = change.batch.unwrap_or(to.batch);
        let leads = requester.id == entry.leader;
        to.priority = priority(change.priority.unwrap_or(to.priority), to.priority, leads)?;
        to.idle_swap = change.idle_swap.map_or(Ok(to.idle_swap), limit)?;
        to.auto_swap = change.auto_swap.map_or(Ok(to.auto_swap), limit)?;
        self.store.settle(id, &to)?;
        self.hub.publish(id, entry.project, Kind::State, &to);
        self.look();
        Ok(to)
    }

    /// Replaces the text of an experiment that is not running; earlier measurements that still apply count.
    pub fn rewrite(&self, requester: &Requester, id: i64, new: &NewText) -> Result<Experiment, Refusal> {
        let entry = self.own(requester, id)?;
        if entry.experiment.study.is_some() {
            return Err(Refusal::conflict(
                "a study has no text of yours",
                "submit an experiment of your own",
            ));
        }
        let name = &entry.experiment.name;
        let title = self.title_of(name, &new.text, new.format, entry.project)?;
        let text = (new.text.as_str(), new.format);
        match self.store.write_text(id, text, &title, requester.id, now())? {
            None => Err(Refusal::not_found()),
            Some(Err(state)) => {
                Err(Refusal::conflict(format!("experiment {id} is {}", state.word()), cure(state)))
            }
            Some(Ok(moved)) => {
                self.announce(&moved);
                Ok(moved.entry.experiment)
            }
        }
    }

    /// Submits the same experiment again, optionally with other values.
    pub fn again(&self, requester: &Requester, id: i64, rerun: Rerun) -> Result<Experiment, Refusal> {
        let old = self.experiment(requester, id)?;
        let project = Some(old.project.clone());
        // A leader's urgency is not for everybody who repeats it.
        let (own_project, leader) = self.project_of(requester, Some(&old.project))?;
        let inherited = if requester.id == leader { old.priority } else { old.priority.min(0) };
        if let Some(study) = &old.study {
            if !rerun.set.is_empty() {
                return Err(Refusal::bad(
                    "a study has no keys to set",
                    "submit an experiment of your own, or run the study as it is",
                ));
            }
            let run = StudyRun {
                quick: old.quick,
                project,
                priority: Some(inherited),
                cores: Some(old.cores),
                hold: rerun.hold,
            };
            return self.run_study(requester, study, run);
        }
        let text = self.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
        let (text, format) = with_values(&old.name, text, &rerun.set, &self.permission(own_project)?)?;
        let submission = Submission {
            text,
            format,
            name: Some(rerun.name.unwrap_or(old.name)),
            project,
            batch: Some(old.batch),
            priority: Some(inherited),
            idle_swap: old.idle_swap,
            auto_swap: old.auto_swap,
            cores: Some(old.cores),
            hold: rerun.hold,
        };
        self.submit(requester, submission)
    }

    /// Deletes an experiment with all its files.
    pub fn remove(&self, requester: &Requester, id: i64) -> Result<(), Refusal> {
        let entry = self.own(requester, id)?;
        let dir = self.command(id)?.dir;
        let state = entry.experiment.state;
        let removed = match self.store.remove(id) {
            // Its files make the room to record that it is gone.
            Err(error) if is_disk_full(&error) && !holds_cores(state) => {
                std::fs::remove_dir_all(&dir)?;
                self.store.remove(id)
            }
            removed => removed,
        };
        if !removed? {
            return Err(Refusal::conflict(
                format!("experiment {id} is {}", state.word()),
                "swap it out first",
            ));
        }
        self.hub.publish(id, entry.project, Kind::Closed, &id);
        self.shells.forget(id);
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns a project and its leader.
    pub(crate) fn project_of(
        &self,
        requester: &Requester,
        name: Option<&str>,
    ) -> Result<(i64, i64), Refusal> {
        let own = self.store.projects(requester.id, false)?;
        let name = match name {
            Some(name) => name,
            None => match own.iter().find(|project| project.is_approved) {
                Some(project) => &project.name,
                None => return Err(Refusal::forbidden(format!("{} is in no project yet", requester.name))),
            },
        };
        self.store.project(name, requester.id)?.ok_or_else(Refusal::not_found)
    }
}

/// Returns the text with the values in `set`; unchanged if empty.
fn with_values(
    name: &str,
    Text { text, format, .. }: Text,
    set: &BTreeMap<String, String>,
    permission: &Permission,
) -> Result<(String, Format), Refusal> {
    if set.is_empty() {
        return Ok((text, format));
    }
    if format == Format::Ns {
        return Err(Refusal::bad(
            "a script has no keys to set",
            "send the changed script as a new experiment",
        ));
    }
    let mut source = Source::new(format!("{name}.toml"), text).permitted(permission.clone());
    let unreadable = |error: hol_lab::InputError| Refusal::unreadable(vec![problem(&error.into())]);
    for (key, value) in set {
        source.set(&format!("set {key}"), key, value).map_err(unreadable)?;
    }
    let table = source.merged().map_err(unreadable)?;
    Ok((toml::to_string(&table).map_err(Refusal::internal)?, Format::Toml))
}

/// Checks a name, which becomes part of file names and mail subjects.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= LONGEST_NAME
        && name.chars().all(fits);
    if is_name {
        return Ok(());
    }
    let cure = format!(
        "up to {LONGEST_NAME} letters, digits, -, _ and ., of which the first is a letter or a digit"
    );
    Err(Refusal::bad("this is no name", cure))
}

/// Makes a name from a title: `What loss does` becomes `what-loss-does`.
fn name_of(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    let name: String = name.chars().take(40).collect();
    if name.is_empty() { "experiment".to_owned() } else { name }
}

fn shortened(title: &str) -> String {
    title.chars().filter(|c| !c.is_control()).take(LONGEST_TITLE).collect()
}

/// Checks a priority; only a leader raises it above `from`, and above 0.
fn priority(wanted: i64, from: i64, leads: bool) -> Result<i64, Refusal> {
    if !(-MAX_URGENT..=MAX_URGENT).contains(&wanted) {
        return Err(range("priority", -MAX_URGENT, MAX_URGENT));
    }
    if !leads && wanted > from.max(0) {
        return Err(Refusal::forbidden("only the leader of a project gives a priority above 0"));
    }
    Ok(wanted)
}

fn limit(wanted: u32) -> Result<Option<u32>, Refusal> {
    match wanted {
        0 => Ok(None),
        1..=LONGEST_TIME => Ok(Some(wanted)),
        _ => Err(range("a time", 0, LONGEST_TIME.into())),
    }
}

/// The queue rejects more cores than the machine has, and says how many there are.
fn cores(wanted: u32) -> Result<u32, Refusal> {
    if (1..=4096).contains(&wanted) { Ok(wanted) } else { Err(range("cores", 1, 4096)) }
}

fn range(what: &str, from: i64, to: i64) -> Refusal {
    Refusal::bad(format!("{what} is out of range"), format!("{from} to {to}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths_and_no_options() {
        for bad in ["", ".", "..", "../x", "a/b", "-rf", "a b", "a\n", "é", "a\0", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "loss-1.5", "A_b", "0"] {
            assert!(check_name(good).is_ok(), "{good:?}");
            assert!(check_name(&name_of(&format!("../{good}!!"))).is_ok(), "{good:?}");
        }
        assert_eq!(name_of("What loss does: 1 %"), "what-loss-does-1");
        assert_eq!(name_of("…"), "experiment");
    }
}
