//! Scripts and properties.
