//! The place of a discipline or a class among those of a device. tc(8), CLASSES and QDISCS.

/// The place of a discipline or a class, as a line of tc gives it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum QdiscLocation {
    /// The root of the device: `root`, or no word, as in `netem delay 50ms`.
    #[default]
    Root,
    /// The place of a discipline below another one: `parent 1:10`.
    Below(TcHandle),
    /// The place of a class: `classid 1:10`.
    Class(TcHandle),
    /// The place of a discipline for incoming packets: `ingress`, `clsact`.
    Ingress,
    /// The place of the existing discipline that has the given handle: `qdisc change dev eth0 handle 10: netem
    /// loss 1%`.
    OfHandle,
}

/// The handle of a discipline or a class: its major and its minor number, as in `1:10`. `1:` and `1:0` are equal.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TcHandle {
    pub major: String,
    minor: String,
}

impl TcHandle {
    pub(super) fn parse(word: &str) -> Option<Self> {
        let (major, minor) = word.split_once(':')?;
        let number = |text: &str| text.trim_start_matches('0').to_ascii_lowercase();
        Some(Self { major: number(major), minor: number(minor) })
    }
}

impl QdiscLocation {
    /// Returns the place that a line names; `name` is the word after the kind of discipline, where the output of
    /// tc has the handle.
    pub(super) fn of_line(words: &[&str], name: Option<&&str>) -> Self {
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1));
        let identifier = |word: Option<&&str>| TcHandle::parse(word?);
        if words.contains(&"classid") || words.contains(&"class") {
            return identifier(after("classid").or(name)).map_or(Self::Root, Self::Class);
        }
        if words.contains(&"ingress") || words.contains(&"clsact") {
            return Self::Ingress;
        }
        match identifier(after("parent")) {
            Some(parent) => Self::Below(parent),
            None if !words.contains(&"root") && words.contains(&"handle") => Self::OfHandle,
            None => Self::Root,
        }
    }

    /// Returns the major number of the discipline that contains this place.
    pub(super) fn container(&self) -> Option<&str> {
        match self {
            Self::Below(identifier) | Self::Class(identifier) => Some(&identifier.major),
            Self::Root | Self::Ingress | Self::OfHandle => None,
        }
    }
}
