//! Scripts for ns and Emulab.

mod properties;
mod scripts;
mod traffic;
