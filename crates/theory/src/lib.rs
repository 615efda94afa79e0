//! Closed-form models that the measurements are held against
