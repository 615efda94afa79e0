//! Tests with scripts (one endpoint, whose peer is the test) and pairs (two endpoints and a lossy network).

mod acknowledging;
mod handshake;
mod interleaving;
mod listener;
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
