//! Paths by name, such as `path = "lte"`: tables of settings with their sources, in `paths/`.

use std::fmt;
use std::str::FromStr;

use hol_base::nearest_word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Generates [`NamedPath`] from the names of the files in `paths/`.
macro_rules! named_paths {
    ($($variant:ident = $name:literal,)*) => {
        /// A named path: its settings are a file of `paths/`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[expect(missing_docs, reason = "each file describes its path")]
        pub enum NamedPath {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl NamedPath {
            /// All named paths, in the order in which lists show them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name of the path.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the path's file: comments with the sources, and the keys of a `[network]` table,
            /// without `path`.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../paths/", $name, ".toml")),)*
                }
            }
        }
    };
}

named_paths! {
    Wifi = "wifi",
    Lte = "lte",
    FiveG = "5g",
    Starlink = "starlink",
    Dsl = "dsl",
    Cable = "cable",
    Geo = "geo",
    Datacenter = "datacenter",
    Transatlantic = "transatlantic",
}

impl NamedPath {
    /// Returns a summary of the path: the first line of its file.
    pub fn summary(self) -> &'static str {
        self.text().lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }

    /// Returns the short form of the path's sources: the second line of its file.
    pub fn source(self) -> &'static str {
        let line = self.text().lines().nth(1).unwrap_or_default();
        line.strip_prefix("# Source: ").unwrap_or_default()
    }
}

impl FromStr for NamedPath {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.iter().map(|path| path.name());
        Self::ALL.iter().copied().find(|path| path.name() == name).ok_or_else(|| {
            let cure = match nearest_word(name, names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("use one of {}", names().collect::<Vec<_>>().join(", ")),
            };
            format!("unknown path {name:?}; {cure}")
        })
    }
}

impl fmt::Display for NamedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::NetworkSpec;
    use crate::topology::Topology;

    fn spec(path: NamedPath) -> NetworkSpec {
        toml::from_str(path.text()).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    #[test]
    fn every_path_file_is_one_link_with_its_sources() {
        for path in NamedPath::ALL.iter().copied() {
            let topology = Topology::new(&spec(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
            assert_eq!(topology.links().len(), 2, "{path}");
            assert!(path.summary().len() > 20 && !path.source().is_empty(), "{path}");
            let comments: Vec<&str> = path.text().lines().filter(|line| line.starts_with("# ")).collect();
            for part in ["# Measured: ", "# Our choice: "] {
                assert!(comments.iter().any(|line| line.starts_with(part)), "{path}: {part}");
            }
        }
    }

    #[test]
    fn unknown_name_is_refused_with_a_suggestion_or_all_names() {
        for path in NamedPath::ALL {
            assert_eq!(path.name().parse(), Ok(*path));
        }
        let error = "starlnik".parse::<NamedPath>().unwrap_err();
        assert!(error.contains("did you mean \"starlink\"?"), "{error}");
        let error = "moon".parse::<NamedPath>().unwrap_err();
        assert!(error.contains("\"moon\"; use one of wifi, lte"), "{error}");
    }

    #[test]
    fn network_with_an_unresolved_path_name_is_refused() {
        for text in ["path = 'lte'", "paths = [{}, { path = 'lte' }]"] {
            let error = Topology::new(&toml::from_str(text).unwrap()).unwrap_err().to_string();
            assert!(error.contains("hol help lte"), "{error}");
        }
    }
}
