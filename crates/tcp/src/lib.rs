//! A sans-IO TCP endpoint
