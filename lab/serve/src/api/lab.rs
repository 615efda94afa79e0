//! Endpoints for the machine, and for the studies that come with the program.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::StatusCode;
use hol_kernel::Image;
use hol_lab::{Host, Study};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::blocking::run_blocking;
use crate::experiment::Experiment;
use crate::extract::{JsonBody, PathParameter};
use crate::refusal::{Problems, Refusal};
use crate::requester::Requester;
use crate::server::{Server, SharedServer};
use crate::submission::StudyRun;

pub fn routes() -> OpenApiRouter<SharedServer> {
    OpenApiRouter::new().routes(routes!(machine)).routes(routes!(studies)).routes(routes!(run))
}

/// The machine and its resources.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Machine {
    /// Number of cores for experiments.
    pub cores: u32,
    /// Number of cores that no experiment uses.
    pub free_cores: u32,
    /// Model of the processor.
    pub cpu: String,
    /// Operating system.
    pub os: String,
    /// Octets of memory.
    pub memory: u64,
    /// Releases of the installed kernels, for the kernel world.
    pub kernels: Vec<String>,
    /// The engine of the kernel world, or how to install one.
    pub engine: String,
    /// Whether experiments may have programs.
    pub may_run_programs: bool,
    /// Version of this program.
    pub version: &'static str,
}

/// A study that comes with the program.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StudyEntry {
    /// Name of the study, as in `hol reproduce`.
    pub name: &'static str,
    /// Title of the study.
    pub title: &'static str,
}

impl Server {
    /// Returns the machine and its resources.
    pub fn machine(&self) -> Result<Machine, Refusal> {
        let Host { cpu, os, memory, .. } = Host::current();
        let engine = match hol_kernel::provenance() {
            Ok(provenance) => provenance.warning().unwrap_or_else(|| provenance.to_string()),
            Err(problem) => problem.to_string(),
        };
        Ok(Machine {
            cores: self.config.cores,
            free_cores: self.free_cores()?,
            cpu,
            os,
            memory,
            kernels: Image::list().into_iter().map(|image| image.release).collect(),
            engine,
            may_run_programs: self.config.permission.programs,
            version: env!("CARGO_PKG_VERSION"),
        })
    }
}

/// Returns the machine and its free resources.
#[utoipa::path(get, path = "/api/machine", responses((status = 200, body = Machine)))]
async fn machine(
    Extract(server): Extract<SharedServer>,
    _requester: Requester,
) -> Result<Json<Machine>, Refusal> {
    run_blocking(server, Server::machine).await.map(Json)
}

/// Lists the studies that come with the program.
#[utoipa::path(get, path = "/api/studies", responses((status = 200, body = Vec<StudyEntry>)))]
async fn studies(_requester: Requester) -> Json<Vec<StudyEntry>> {
    Json(Study::all().map(|(name, title)| StudyEntry { name, title }).collect())
}

/// Submits a study as an experiment.
#[utoipa::path(post, path = "/api/studies/{name}/run", params(("name" = String, Path)), request_body = Option<StudyRun>,
    responses((status = 201, body = Experiment),
    (status = 403, description = "The user is in no project, or may not give this priority", body = Problems),
    (status = 404, body = Problems), (status = 429, description = "Too many unfinished experiments", body = Problems)))]
async fn run(
    Extract(server): Extract<SharedServer>,
    requester: Requester,
    PathParameter(name): PathParameter<String>,
    run: Option<JsonBody<StudyRun>>,
) -> Result<(StatusCode, Json<Experiment>), Refusal> {
    let run = run.map_or_else(StudyRun::default, |JsonBody(run)| run);
    let submitted = run_blocking(server, move |server| server.submit_study(&requester, &name, run)).await?;
    Ok((StatusCode::CREATED, Json(submitted)))
}
