//! Figures, tables, claims and the page
