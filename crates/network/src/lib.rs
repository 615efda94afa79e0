//! Links, queues, impairments, topology, and the order of events
