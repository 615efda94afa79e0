//! Scripts for ns and Emulab.

mod causes;
mod classes;
mod limits;
mod ns;
mod properties;
mod random;
mod refusals;
mod scripts;
mod traffic;
