//! The state shared by all requests, and the operations on it. The operations may block, so they run on threads that may block.

use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hol_lab::Permission;
use serde::de::DeserializeOwned;

use crate::accounts::attempts::Attempts;
use crate::clock::now;
use crate::computation::{Computation, NamedText, Task};
use crate::concurrency::ConcurrencyLimits;
use crate::events::{EventHub, EventKind};
use crate::experiment::{Experiment, Filter, State};
use crate::jobs::{self, SchedulerMessage};
use crate::lifecycle::{Event, remedy};
use crate::mail::{self, Mailer};
use crate::quota::Quota;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::shell::Shells;
use crate::store::{DATABASE_FILE, Owner, StateChange, Store, StoreError, StoredExperiment, User};
use crate::worker::{Answer, Worker, read_answer};

/// The server, shared by all requests.
pub type SharedServer = Arc<Server>;

/// The people who may use the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone who can connect: the server listens on loopback.
    Open,
    /// Users with an account, who log in.
    Accounts,
}

/// The configuration of the server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory.
    pub state: PathBuf,
    /// Path of the `hol` that runs experiments.
    pub program: PathBuf,
    /// Number of cores for experiments.
    pub cores: u32,
    /// Who has access.
    pub access: Access,
    /// The resources of this machine that experiments may use.
    pub permission: Permission,
    /// Maximum usage of each project.
    pub quota: Quota,
    /// Host names of the server, in addition to addresses and localhost.
    pub names: Vec<String>,
    /// Whether browsers connect by TLS.
    pub is_secure: bool,
    /// Whether a proxy in front of the server adds the address of the client to requests.
    pub is_behind_proxy: bool,
    /// Whether computations over the texts of experiments run in child processes; this program must then be
    /// `hol-serve`.
    pub has_children: bool,
}

/// The server: a state directory, and the state in memory.
#[derive(Debug)]
pub struct Server {
    /// The configuration.
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) hub: EventHub,
    pub(crate) attempts: Mutex<Attempts>,
    pub(crate) limits: ConcurrencyLimits,
    pub(crate) shells: Shells,
    pub(crate) worker: Arc<Worker>,
    /// The only user, if there is no login.
    pub(crate) local: Option<Requester>,
    mailer: Mailer,
    /// URL of this server, without a final `/`; known when it listens.
    pub(crate) url: OnceLock<String>,
    scheduler: Sender<SchedulerMessage>,
    /// Locked while a report is written, because only one report is written at a time.
    report_lock: Mutex<()>,
    /// Locked as long as the server lives, because two servers would start every experiment twice.
    _lock: File,
}

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory cannot be created or locked.
    #[error("{0}: {1}; choose another directory with --state DIR")]
    Directory(PathBuf, std::io::Error),
    /// Another server uses the directory.
    #[error(
        "{0}: another hol serve uses this directory; stop it, or choose another directory with --state DIR"
    )]
    Taken(PathBuf),
    /// The database cannot be read or changed.
    #[error("cannot use the database in the state directory: {0}; check the disk and the permissions")]
    Database(#[from] rusqlite::Error),
}

impl Server {
    /// Opens the state directory. Experiments that were running when the last server ended are queued again.
    pub fn open(
        config: Config,
        mailer: Mailer,
        scheduler: Sender<SchedulerMessage>,
    ) -> Result<Self, StateError> {
        let lock = lock_directory(&config.state)?;
        let store = Store::open(&config.state.join(DATABASE_FILE))?;
        let local = if config.access == Access::Open { Some(create_local_user(&store)?) } else { None };
        let worker = Worker::new(config.access, config.has_children, config.state.clone());
        let server = Self {
            config,
            store,
            hub: EventHub::default(),
            attempts: Mutex::default(),
            limits: ConcurrencyLimits::default(),
            shells: Shells::default(),
            worker: Arc::new(worker),
            local,
            mailer,
            url: OnceLock::new(),
            scheduler,
            report_lock: Mutex::default(),
            _lock: lock,
        };
        server.count_files();
        for id in server.store.holding_cores()? {
            server.apply_event(
                id,
                Event::Die,
                "the server was stopped; the experiment continues after its completed runs",
            );
        }
        Ok(server)
    }

    /// Lists the experiments that `requester` may see, the newest first.
    pub fn experiments(&self, requester: &Requester, filter: &Filter) -> Result<Vec<Experiment>, Refusal> {
        Ok(self.store.list_experiments(requester.id, filter)?)
    }

    /// Returns how many experiments that `requester` may see are in each state.
    pub fn counts(&self, requester: &Requester) -> Result<Vec<(State, u64)>, Refusal> {
        Ok(self.store.counts(requester.id)?)
    }

    /// Returns the number of cores that no experiment uses.
    pub fn free_cores(&self) -> Result<u32, Refusal> {
        let mut taken = 0;
        for id in self.store.holding_cores()? {
            taken += self.store.entry(id)?.map_or(0, |entry| entry.experiment.cores);
        }
        Ok(self.config.cores.saturating_sub(taken))
    }

    /// Returns experiment `id`, if `requester` may see it; otherwise the result is 404.
    pub fn experiment(&self, requester: &Requester, id: i64) -> Result<Experiment, Refusal> {
        self.entry(requester, id).map(|entry| entry.experiment)
    }

    pub(crate) fn entry(&self, requester: &Requester, id: i64) -> Result<StoredExperiment, Refusal> {
        self.store.visible_experiment(requester.id, id)?.ok_or_else(Refusal::not_found)
    }

    /// Returns experiment `id` if `requester` may change it: as its owner, or as the leader of its project.
    pub(crate) fn entry_to_change(
        &self,
        requester: &Requester,
        id: i64,
    ) -> Result<StoredExperiment, Refusal> {
        let entry = self.entry(requester, id)?;
        if [entry.owner, entry.leader].contains(&requester.id) {
            return Ok(entry);
        }
        let whose = format!("experiment {id} belongs to {}", entry.experiment.owner);
        Err(Refusal::forbidden(whose))
    }

    /// Applies a user's action to an experiment.
    pub fn apply_action(&self, requester: &Requester, id: i64, event: Event) -> Result<Experiment, Refusal> {
        self.entry_to_change(requester, id)?;
        let why = match event {
            Event::SwapOut | Event::Terminate => format!("by {}", requester.name),
            _ => String::new(),
        };
        match self.store.apply(id, event, &why, now())? {
            None => Err(Refusal::not_found()),
            Some(Err(state)) => {
                Err(Refusal::conflict(format!("experiment {id} is {}", state.word()), remedy(state)))
            }
            Some(Ok(change)) => {
                self.announce(&change);
                Ok(change.entry.experiment)
            }
        }
    }

    /// Applies an event that no user caused. Ignores the event if the state does not allow it any more.
    pub(crate) fn apply_event(&self, id: i64, event: Event, why: &str) {
        match self.store.apply(id, event, why, now()) {
            Ok(Some(Ok(change))) => self.announce(&change),
            Ok(_) => (),
            Err(problem) => self.log_error(&problem),
        }
    }

    /// Returns why the experiments of `project` may not use further resources, or `None` if they may.
    pub(crate) fn quota_excess(&self, project: i64) -> rusqlite::Result<Option<String>> {
        Ok(self.config.quota.excess(&self.store.usage(project)?))
    }

    /// Rejects `more` octets that would exceed the disk quota of `project`.
    pub(crate) fn check_disk(&self, project: i64, more: usize) -> Result<(), Refusal> {
        match self.config.quota.disk_excess(&self.store.usage(project)?, more as u64) {
            Some(why) => Err(Refusal::quota_exceeded(&why)),
            None => Ok(()),
        }
    }

    /// Records why experiments wait.
    pub(crate) fn record_wait_reasons(&self, whys: &[(i64, String)]) -> rusqlite::Result<()> {
        self.store.record_wait_reasons(whys)?;
        for (id, _) in whys.iter().filter(|_| self.hub.watcher_count() > 0) {
            if let Some(entry) = self.store.entry(*id)? {
                self.hub.publish(*id, entry.project, EventKind::State, &entry.experiment);
            }
        }
        Ok(())
    }

    /// Sends a state change to watchers and by mail, and wakes the scheduler.
    pub(crate) fn announce(&self, change: &StateChange) {
        let experiment = &change.entry.experiment;
        self.hub.publish(experiment.id, change.entry.project, EventKind::State, experiment);
        if mail::is_reported(change.from, experiment.state)
            && self.mailer.is_open()
            && let Err(problem) = self.write_mail(change)
        {
            self.log_error(&problem);
        }
        self.wake_scheduler();
    }

    fn write_mail(&self, change: &StateChange) -> rusqlite::Result<()> {
        let StateChange { from, entry } = change;
        let to = self.store.mail_of(entry.owner)?.unwrap_or_default();
        // The first mail after the start contains the nodes and links, even if the experiment ends before it is active.
        let begins = entry.experiment.state == State::Active || *from == State::Starting;
        let text = if begins { self.store.text(entry.experiment.id, None)? } else { None };
        let text = text.map(|text| text.text).filter(|text| !text.is_empty());
        let (experiment, permission) = (entry.experiment.clone(), self.permission(entry.project)?);
        let tables = text.map(|text| {
            let text = NamedText { name: experiment.name.clone(), text, format: experiment.format };
            (Computation { task: Task::Tables(text), permission }, self.worker.clone())
        });
        let url = self.url.get().cloned().unwrap_or_default();
        self.mailer.queue(mail::StateChangeMail { to, url, from: *from, experiment, tables });
        Ok(())
    }

    /// Makes the scheduler check the queue.
    pub(crate) fn wake_scheduler(&self) {
        // Sending fails without a scheduler, when the server is stopping.
        let _ = self.scheduler.send(SchedulerMessage::Check);
    }

    /// Returns the data that are needed to start processes of experiment `id`.
    pub(crate) fn runner_command(&self, id: i64) -> rusqlite::Result<jobs::RunnerCommand> {
        let dir = self.directory(Owner::Experiment, id)?;
        let project = self.store.entry(id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?.project;
        let permission = self.permission(project)?;
        let (program, worker) = (self.config.program.clone(), self.worker.clone());
        Ok(jobs::RunnerCommand { program, dir, permission, worker })
    }

    /// Returns the resources of this machine that experiments of a project may use.
    pub(crate) fn permission(&self, project: i64) -> rusqlite::Result<Permission> {
        let files = self.directory(Owner::Project, project)?;
        Ok(Permission { project: Some(files), ..self.config.permission.clone() })
    }

    /// Returns the directory of an experiment, a user or a project.
    pub(crate) fn directory(&self, owner: Owner, id: i64) -> rusqlite::Result<PathBuf> {
        let name = self.store.directory(owner, id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        Ok(self.config.state.join(owner.table_name()).join(name))
    }

    /// Returns the number of a user to whom limits apply; `None` for the owner of the machine.
    pub(crate) fn limited_user(&self, requester: &Requester) -> Option<i64> {
        self.local.is_none().then_some(requester.id)
    }

    /// Runs a computation for a user as soon as few others run, and returns its answer.
    pub(crate) fn compute(
        &self,
        requester: &Requester,
        task: Task,
        permission: Permission,
    ) -> Result<Answer, Refusal> {
        self.worker.run(self.limited_user(requester), &Computation { task, permission })
    }

    /// Runs a computation like [`compute`](Self::compute), and reads its answer.
    pub(crate) fn compute_value<T: DeserializeOwned>(
        &self,
        requester: &Requester,
        task: Task,
        permission: Permission,
    ) -> Result<T, Refusal> {
        read_answer(self.compute(requester, task, permission)?)
    }

    /// Writes the report of an experiment, one report at a time, unless another request has already done so.
    pub(crate) fn write_report(&self, id: i64, is_old: impl Fn() -> bool) -> Result<(), Refusal> {
        let _turn = self.report_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_old() {
            return Ok(());
        }
        jobs::write_report(&self.runner_command(id)?).map_err(Refusal::internal)
    }

    /// Reports a problem on standard error.
    pub(crate) fn log_error(&self, problem: &impl fmt::Display) {
        drop(Refusal::internal(problem));
    }
}

fn lock_directory(state: &std::path::Path) -> Result<File, StateError> {
    use std::os::unix::fs::DirBuilderExt;
    let failed = |error| StateError::Directory(state.to_owned(), error);
    // Only the owner may read the directory, which contains password hashes and results.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(failed)?;
    let file = File::create(state.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(StateError::Taken(state.to_owned())),
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(file),
    }
}

/// Name of the only user without login; no account can have this name.
pub const LOCAL_USER: &str = "local";

/// Creates the user and the project of a server without login. The user has no password, so no login is possible if
/// the server later requires one.
fn create_local_user(store: &Store) -> Result<Requester, StateError> {
    let user = User { name: LOCAL_USER.to_owned(), mail: String::new(), is_administrator: true };
    let id = match store.credentials(LOCAL_USER)? {
        Some(credentials) => credentials.id,
        None => store.add_user(&user, "", now())?.ok_or(rusqlite::Error::QueryReturnedNoRows)?,
    };
    // Fails without harm if the project exists, as at every start but the first.
    store.add_project((LOCAL_USER, "Everything on this machine"), id, true, now())?;
    Ok(Requester { id, name: user.name, is_administrator: true, token_expires_at: None })
}
