//! Scripts for ns and Emulab.

mod ns;
mod properties;
mod scripts;
mod traffic;
