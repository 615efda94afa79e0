//! Blocking work, away from the threads that serve.

use crate::refusal::Refusal;
use crate::server::{Server, Shared};

/// Runs `work` on a thread that may block.
pub async fn at_leisure<T: Send + 'static>(
    server: Shared,
    work: impl FnOnce(&Server) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(move || work(&server))
        .await
        .unwrap_or_else(|panic| Err(Refusal::internal(panic)))
}

/// As [`at_leisure`] for expensive work: limits concurrency even if the client has gone.
pub async fn at_cost<T: Send + 'static>(
    server: Shared,
    work: impl FnOnce(&Server) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let turn = server.turns.costly()?;
    at_leisure(server, move |server| {
        let _turn = turn;
        work(server)
    })
    .await
}
