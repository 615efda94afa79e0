//! The model world: endpoints and workloads on simulated links under a virtual clock
