//! Scripts (one endpoint, a peer made of expectations) and pairs (two endpoints, a lossy network between
//! them).

mod acknowledging;
mod handshake;
mod interleaving;
mod moving;
mod multihoming;
mod multipath;
mod pair;
mod parameters;
mod partial;
mod properties;
mod rack;
mod recovery;
mod resets;
mod script;
mod sending;
mod server;
mod shutdown;
mod unexpected;
