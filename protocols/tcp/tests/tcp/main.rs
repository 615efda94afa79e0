//! Two endpoints with a path between them, or one and a peer played by hand.

mod endpoint;
mod hostile;
mod latency;
mod pipe;
mod script;
mod transfer;
