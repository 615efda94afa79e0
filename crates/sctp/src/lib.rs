//! A sans-IO SCTP endpoint
