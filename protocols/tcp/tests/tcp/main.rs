//! Tests two endpoints with a path between them, and single endpoints whose peer is a script.

mod endpoint;
mod giving_up;
mod hostile;
mod latency;
mod linux_2_6_16;
mod pipe;
mod script;
mod transfer;
