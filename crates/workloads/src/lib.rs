//! What the application does: sans-IO workloads and the open-loop load generator
