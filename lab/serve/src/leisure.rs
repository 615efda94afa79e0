//! Work that waits for the disk, away from the threads that serve.

use crate::refusal::Refusal;
use crate::server::{Server, Shared};

/// Does `work` where waiting is allowed.
pub async fn at_leisure<T: Send + 'static>(
    server: Shared,
    work: impl FnOnce(&Server) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(move || work(&server))
        .await
        .unwrap_or_else(|panic| Err(Refusal::internal(panic)))
}

/// The same for work that costs much: only so much of it goes on at a time, whether or not whoever asked is still there.
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
