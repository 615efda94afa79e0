//! New experiments, changes of experiments, and experiments that are submitted again.

use std::collections::BTreeMap;

use hol_lab::{Permission, Source, Study};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::clock::now;
use crate::computation::{NamedText, Task};
use crate::draft;
use crate::events::EventKind;
use crate::experiment::{Experiment, Format, State};
use crate::lifecycle::{holds_cores, remedy};
use crate::reading::{check_length, read, to_problem};
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::Server;
use crate::store::{NewExperiment, Text, is_disk_full};

/// Maximum number of unfinished experiments per user.
const MAX_UNFINISHED: u64 = 20_000;
const MAX_NAME_LENGTH: usize = 64;
const MAX_TITLE_LENGTH: usize = 200;
/// Maximum of `idle_swap` and `auto_swap`, in seconds.
const MAX_SWAP_SECONDS: u32 = 366 * 86_400;
/// The highest priority; the lowest is its negative.
const MAX_PRIORITY: i64 = 1000;

/// A new experiment.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// Text of an experiment file or an ns script.
    pub text: String,
    /// Language of the text.
    #[serde(default)]
    pub format: Format,
    /// Name: letters, digits, `-`, `_` and `.`; by default made from the title.
    pub name: Option<String>,
    /// Project; by default the user's first.
    pub project: Option<String>,
    /// Whether the experiment waits for cores (default) instead of being swapped out.
    pub batch: Option<bool>,
    /// Priority, -1000 to 1000 (default 0); experiments with a higher one start first. Only the leader of the project may set it above 0.
    pub priority: Option<i64>,
    /// Seconds without progress after which the experiment is swapped out; 0: never (default).
    pub idle_swap: Option<u32>,
    /// Seconds after which the experiment is swapped out in any case; 0: never (default).
    pub auto_swap: Option<u32>,
    /// Number of cores that the experiment needs; by default all cores of the server.
    pub cores: Option<u32>,
    /// Whether the experiment is held until a user starts it.
    #[serde(default)]
    pub hold: bool,
}

/// Changes of an experiment; absent fields do not change.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Name: letters, digits, `-`, `_` and `.`.
    pub name: Option<String>,
    /// Title, one line.
    pub title: Option<String>,
    /// Whether the experiment waits for cores instead of being swapped out.
    pub batch: Option<bool>,
    /// Priority, -1000 to 1000; experiments with a higher one start first. Only the leader of the project may raise it above 0.
    pub priority: Option<i64>,
    /// Seconds without progress after which the experiment is swapped out; 0: never.
    pub idle_swap: Option<u32>,
    /// Seconds after which the experiment is swapped out in any case; 0: never.
    pub auto_swap: Option<u32>,
    /// Number of cores that the experiment needs.
    pub cores: Option<u32>,
}

/// A new version of a text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewText {
    /// Text of an experiment file or an ns script.
    pub text: String,
    /// Language of the text.
    #[serde(default)]
    pub format: Format,
}

/// Options of an experiment that is submitted again.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// Keys of the experiment and their new values, as in `hol run --set`.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Name of the new experiment; by default the name of the old experiment.
    pub name: Option<String>,
    /// Whether the new experiment is held until a user starts it.
    #[serde(default)]
    pub hold: bool,
}

/// The options of a study's run.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyRun {
    /// Whether to send only a twentieth of the messages.
    #[serde(default)]
    pub quick: bool,
    /// Project; by default the user's first.
    pub project: Option<String>,
    /// Priority, -1000 to 1000 (default 0); experiments with a higher one start first. Only the leader of the project may set it above 0.
    pub priority: Option<i64>,
    /// Number of cores that the experiment needs; by default all cores of the server.
    pub cores: Option<u32>,
    /// Whether the experiment is held until a user starts it.
    #[serde(default)]
    pub hold: bool,
}

impl Server {
    /// Submits a new experiment.
    pub fn submit(&self, requester: &Requester, wanted: Submission) -> Result<Experiment, Refusal> {
        let called = wanted.name.clone().unwrap_or_else(|| "experiment".to_owned());
        check_name(&called)?;
        let (project, _) = self.project_of(requester, wanted.project.as_deref())?;
        let title = self.check_text(requester, &called, &wanted.text, wanted.format, project)?;
        let name = wanted.name.clone().unwrap_or_else(|| name_of(&title));
        self.add_experiment(requester, name, title, None, wanted)
    }

    /// Checks the text of an experiment of `project`, and returns its title.
    fn check_text(
        &self,
        requester: &Requester,
        name: &str,
        text: &str,
        format: Format,
        project: i64,
    ) -> Result<String, Refusal> {
        check_length(text)?;
        let text = NamedText { name: name.to_owned(), text: text.to_owned(), format };
        self.compute_value(requester, Task::Check(text), self.permission(project)?)
    }

    /// Submits a study that comes with the program.
    pub fn submit_study(
        &self,
        requester: &Requester,
        name: &str,
        wanted: StudyRun,
    ) -> Result<Experiment, Refusal> {
        let (name, title) = Study::all().find(|(known, _)| *known == name).ok_or_else(Refusal::not_found)?;
        let StudyRun { quick, project, priority, cores, hold } = wanted;
        let submission = Submission { project, priority, cores, hold, ..Submission::default() };
        self.add_experiment(requester, name.to_owned(), title.to_owned(), Some((name, quick)), submission)
    }

    fn add_experiment(
        &self,
        requester: &Requester,
        name: String,
        title: String,
        study: Option<(&str, bool)>,
        wanted: Submission,
    ) -> Result<Experiment, Refusal> {
        let (project, leader) = self.project_of(requester, wanted.project.as_deref())?;
        if self.store.count_unfinished(requester.id)? >= MAX_UNFINISHED {
            let problem = format!(
                "{} has {MAX_UNFINISHED} unfinished experiments, which is the maximum; wait until one ends, or delete one",
                requester.name
            );
            return Err(Refusal::too_many(problem, 60));
        }
        self.check_disk(project, wanted.text.len())?;
        let fresh = NewExperiment {
            name,
            title,
            project,
            owner: requester.id,
            state: if wanted.hold { State::New } else { State::Queued },
            priority: check_priority(wanted.priority.unwrap_or(0), 0, requester.id == leader)?,
            batch: wanted.batch.unwrap_or(true),
            cores: check_cores(wanted.cores.unwrap_or(self.config.cores))?,
            idle_swap: check_swap_seconds(wanted.idle_swap.unwrap_or(0))?,
            auto_swap: check_swap_seconds(wanted.auto_swap.unwrap_or(0))?,
            study: study.map(|(name, _)| name.to_owned()),
            quick: study.is_some_and(|(_, quick)| quick),
            text: wanted.text,
            format: wanted.format,
            now: now(),
        };
        let id = self.store.add_experiment(&fresh)?;
        let entry = self.entry(requester, id)?;
        self.hub.publish(id, entry.project, EventKind::State, &entry.experiment);
        self.wake_scheduler();
        Ok(entry.experiment)
    }

    /// Applies changes that are possible in any state.
    pub fn change(&self, requester: &Requester, id: i64, change: Change) -> Result<Experiment, Refusal> {
        let entry = self.entry_to_change(requester, id)?;
        let mut to = entry.experiment;
        if let Some(name) = change.name {
            check_name(&name)?;
            to.name = name;
        }
        if let Some(title) = change.title {
            to.title = shorten_title(&title);
        }
        if let Some(wanted) = change.cores {
            if holds_cores(to.state) && wanted != to.cores {
                return Err(Refusal::conflict(
                    "the experiment is starting or running",
                    "swap the experiment out first",
                ));
            }
            to.cores = check_cores(wanted)?;
        }
        to.batch = change.batch.unwrap_or(to.batch);
        let leads = requester.id == entry.leader;
        to.priority = check_priority(change.priority.unwrap_or(to.priority), to.priority, leads)?;
        to.idle_swap = change.idle_swap.map_or(Ok(to.idle_swap), check_swap_seconds)?;
        to.auto_swap = change.auto_swap.map_or(Ok(to.auto_swap), check_swap_seconds)?;
        self.store.update_experiment(id, &to)?;
        self.hub.publish(id, entry.project, EventKind::State, &to);
        self.wake_scheduler();
        Ok(to)
    }

    /// Replaces the text of an experiment that is not running. Completed runs that are part of the new text, too, are kept.
    pub fn replace_text(&self, requester: &Requester, id: i64, new: &NewText) -> Result<Experiment, Refusal> {
        let entry = self.entry_to_change(requester, id)?;
        if entry.experiment.study.is_some() {
            return Err(Refusal::conflict(
                "the text of a study cannot be changed",
                "submit an experiment of your own",
            ));
        }
        let name = &entry.experiment.name;
        let title = self.check_text(requester, name, &new.text, new.format, entry.project)?;
        self.check_disk(entry.project, new.text.len())?;
        let text = (new.text.as_str(), new.format);
        match self.store.write_text(id, text, &title, requester.id, now())? {
            None => Err(Refusal::not_found()),
            Some(Err(state)) => {
                Err(Refusal::conflict(format!("experiment {id} is {}", state.word()), remedy(state)))
            }
            Some(Ok(moved)) => {
                self.announce(&moved);
                Ok(moved.entry.experiment)
            }
        }
    }

    /// Submits an experiment again as a new one, optionally with other values.
    pub fn rerun(&self, requester: &Requester, id: i64, rerun: Rerun) -> Result<Experiment, Refusal> {
        let old = self.experiment(requester, id)?;
        let project = Some(old.project.clone());
        // A priority that only a leader may set is not inherited by other users.
        let (own_project, leader) = self.project_of(requester, Some(&old.project))?;
        let inherited = if requester.id == leader { old.priority } else { old.priority.min(0) };
        if let Some(study) = &old.study {
            if !rerun.set.is_empty() {
                return Err(Refusal::bad_request(
                    "the keys of a study cannot be set",
                    "submit an experiment of your own, or run the study without changes",
                ));
            }
            let run = StudyRun {
                quick: old.quick,
                project,
                priority: Some(inherited),
                cores: Some(old.cores),
                hold: rerun.hold,
            };
            return self.submit_study(requester, study, run);
        }
        let Text { mut text, format, .. } = self.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
        if !rerun.set.is_empty() {
            let old = NamedText { name: old.name.clone(), text, format };
            text = self.compute_value(requester, Task::Set(old, rerun.set), self.permission(own_project)?)?;
        }
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
        let entry = self.entry_to_change(requester, id)?;
        let dir = self.runner_command(id)?.dir;
        let state = entry.experiment.state;
        let removed = match self.store.remove_experiment(id) {
            // Deleting the files of the experiment frees the space to record the deletion.
            Err(error) if is_disk_full(&error) && !holds_cores(state) => {
                std::fs::remove_dir_all(&dir)?;
                self.store.remove_experiment(id)
            }
            removed => removed,
        };
        if !removed? {
            return Err(Refusal::conflict(
                format!("experiment {id} is {}", state.word()),
                "swap the experiment out first",
            ));
        }
        self.hub.publish(id, entry.project, EventKind::Closed, &id);
        self.shells.forget(id);
        match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns the numbers of a project and of its leader. Without a name, selects the user's first approved project.
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
                None => {
                    return Err(Refusal::new(
                        axum::http::StatusCode::FORBIDDEN,
                        format!("{} is in no project yet", requester.name),
                        "join or create a project on the account page",
                    ));
                }
            },
        };
        self.store.project(name, requester.id)?.ok_or_else(Refusal::not_found)
    }
}

/// Returns the title of a text, which is an experiment or a network without traffic; an error if the text is invalid.
pub fn title_of(
    NamedText { name, text, format }: &NamedText,
    permission: &Permission,
) -> Result<String, Refusal> {
    let refusal = match read(name, text, *format, permission) {
        Ok(experiment) => return Ok(shorten_title(&experiment.title)),
        Err(refusal) => refusal,
    };
    let whole = draft::with_placeholder_traffic(text, *format, permission).ok_or(refusal)?;
    let experiment = read(name, &whole, *format, permission)?;
    if !permission.programs {
        return Err(Refusal::bad_request(
            "the experiment has no traffic, and this server does not allow users to run programs on nodes",
            "add traffic, or ask the operator of the server to start it with --programs",
        ));
    }
    Ok(shorten_title(&experiment.title))
}

/// Returns an experiment file after setting the keys in `set`.
pub fn with_values(
    NamedText { name, text, format }: &NamedText,
    set: &BTreeMap<String, String>,
    permission: &Permission,
) -> Result<String, Refusal> {
    if *format == Format::Ns {
        return Err(Refusal::bad_request(
            "the keys of an ns script cannot be set",
            "send the changed script as a new experiment",
        ));
    }
    let mut source = Source::new(format!("{name}.toml"), text).with_permission(permission.clone());
    let unreadable = |error: hol_lab::InputError| Refusal::invalid_text(vec![to_problem(&error.into())]);
    for (key, value) in set {
        source.set(&format!("set {key}"), key, value).map_err(unreadable)?;
    }
    let table = source.merged().map_err(unreadable)?;
    toml::to_string(&table).map_err(Refusal::internal)
}

/// Checks a name, which becomes part of file names and mail subjects.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= MAX_NAME_LENGTH
        && name.chars().all(fits);
    if is_name {
        return Ok(());
    }
    let cure = format!(
        "use at most {MAX_NAME_LENGTH} letters, digits, -, _ and ., and begin with a letter or a digit"
    );
    Err(Refusal::bad_request("this is not a valid name", cure))
}

/// Makes a name from a title: `What loss does` becomes `what-loss-does`.
fn name_of(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    let name: String = name.chars().take(40).collect();
    if name.is_empty() { "experiment".to_owned() } else { name }
}

fn shorten_title(title: &str) -> String {
    title.chars().filter(|c| !c.is_control()).take(MAX_TITLE_LENGTH).collect()
}

/// Checks a priority. Only a leader may raise it above both `from` and 0.
fn check_priority(wanted: i64, from: i64, leads: bool) -> Result<i64, Refusal> {
    if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&wanted) {
        return Err(out_of_range("priority", -MAX_PRIORITY, MAX_PRIORITY));
    }
    if !leads && wanted > from.max(0) {
        return Err(Refusal::forbidden("only the leader of a project may set a priority above 0"));
    }
    Ok(wanted)
}

fn check_swap_seconds(wanted: u32) -> Result<Option<u32>, Refusal> {
    match wanted {
        0 => Ok(None),
        1..=MAX_SWAP_SECONDS => Ok(Some(wanted)),
        _ => Err(out_of_range("a time", 0, MAX_SWAP_SECONDS.into())),
    }
}

/// Checks a number of cores. The queue rejects more cores than the machine has, and reports how many there are.
fn check_cores(wanted: u32) -> Result<u32, Refusal> {
    if (1..=4096).contains(&wanted) { Ok(wanted) } else { Err(out_of_range("cores", 1, 4096)) }
}

fn out_of_range(what: &str, from: i64, to: i64) -> Refusal {
    Refusal::bad_request(format!("{what} is out of range"), format!("choose {from} to {to}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_paths_or_options() {
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
