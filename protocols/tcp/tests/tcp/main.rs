//! Two endpoints with a path between them, or one and a peer played by hand.

mod endpoint;
mod giving_up;
mod hostile;
mod latency;
mod linux_2_6_16;
mod pipe;
mod script;
mod transfer;
