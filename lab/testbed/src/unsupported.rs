//! Parts of ns that hol does not model: one sentence with the cause, instead of a list of unknown commands.
//!
//! A script may have several causes, such as a class of its own and wireless nodes. The most serious one is reported,
//! not the first. If a script is refused for another reason, commands that were not executed are searched for such
//! causes, too.

use crate::simulator::Simulator;
use crate::tcl::{Word, WordError};

/// A kind of feature that hol does not model, the most serious kind first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Satellite,
    Wireless,
    Multicast,
    DiffServ,
    Mpls,
    MobileIp,
    Contention,
    Xcp,
    WebTraffic,
    Emulation,
    Routing,
    Messages,
    Callback,
    Replaced,
}

/// A feature that hol does not model, with its position in the script; hol refuses the script.
#[derive(Debug, Clone)]
pub(crate) struct UnsupportedFeature {
    kind: Kind,
    error: WordError,
}

impl Kind {
    /// Returns the error message, which names the feature that hol does not model, and an alternative.
    const fn reason(self) -> &'static str {
        match self {
            Self::Satellite => {
                "satellite links and nodes are not modelled; hol has wired links and LANs, with any delay"
            }
            Self::Wireless => "wireless nodes are not modelled; hol has wired links and LANs",
            Self::Multicast => "multicast is not modelled; hol's flows have one sender and one receiver",
            Self::DiffServ => {
                "DiffServ's queues and policers are not modelled; hol has DropTail, RED, CoDel, sfqCoDel and PIE"
            }
            Self::Mpls => "MPLS is not modelled; hol's routes are static",
            Self::MobileIp => "Mobile IP is not modelled; hol's nodes stay on their links",
            Self::Contention => {
                "LANs with CSMA/CA are not modelled; a LAN of hol sends one packet at a time, in turns"
            }
            Self::Xcp => "XCP is not modelled; hol has TCP with Reno, CUBIC, BBR and Prague",
            Self::WebTraffic => {
                "ns's generators of web traffic are not modelled; write the requests as a workload of an experiment file"
            }
            Self::Emulation => {
                "ns's emulation on real networks is not modelled; for real network stacks use --world kernel or --world live"
            }
            Self::Routing => "only static routes are supported; remove this, or use Static",
            Self::Messages => {
                "agents that pass data of the application to procedures are not modelled; hol has FTP, CBR, Exponential, Pareto and Telnet"
            }
            Self::Callback => {
                "ns calls this method during the run, but hol executes a script before its run; remove it if it only reports"
            }
            Self::Replaced => "this replaces a method that hol has built in; give yours another name",
        }
    }
}

impl UnsupportedFeature {
    fn new(kind: Kind, what: &str, at: usize) -> Self {
        Self { kind, error: WordError { at, problem: format!("{what:?}: {}", kind.reason()) } }
    }

    /// Returns the unsupported feature that this word indicates.
    pub fn of_word(word: &str, at: usize) -> Option<Self> {
        let is_like = |known: &str| match known.strip_suffix('*') {
            Some(beginning) => word.starts_with(beginning),
            None => word == known,
        };
        let (_, kind) = REVEALING_WORDS.iter().find(|(known, _)| is_like(known))?;
        Some(Self::new(*kind, word, at))
    }

    /// Returns an unsupported feature that concerns routes.
    pub fn routing(at: usize, problem: &str) -> Self {
        Self { kind: Kind::Routing, error: WordError { at, problem: problem.to_owned() } }
    }

    /// Returns whether this feature is always the one reported, so that hol need not read the rest of the script.
    pub fn outranks_all_others(&self) -> bool {
        self.kind < Kind::Routing
    }

    /// Returns whether this feature is more serious than another one and must be reported instead of it.
    pub fn is_graver_than(&self, other: &Self) -> bool {
        self.kind < other.kind
    }

    /// Converts the feature to an error with its message and position.
    pub fn into_error(self) -> WordError {
        self.error
    }
}

/// Words that indicate an unsupported feature; `*` stands for any ending.
const REVEALING_WORDS: [(&str, Kind); 67] = [
    ("Node/SatNode*", Kind::Satellite),
    ("Phy/Sat*", Kind::Satellite),
    ("Mac/Sat*", Kind::Satellite),
    ("LL/Sat*", Kind::Satellite),
    ("satnode*", Kind::Satellite),
    ("node-config-sat*", Kind::Satellite),
    ("-satNodeType", Kind::Satellite),
    ("Mac/802_11*", Kind::Wireless),
    ("Mac/802_15_4*", Kind::Wireless),
    ("Mac/Simple", Kind::Wireless),
    ("Mac/Tdma*", Kind::Wireless),
    ("Mac/SMAC*", Kind::Wireless),
    ("Phy/Wireless*", Kind::Wireless),
    ("Antenna/*", Kind::Wireless),
    ("Propagation/*", Kind::Wireless),
    ("Channel/Wireless*", Kind::Wireless),
    ("Topography", Kind::Wireless),
    ("create-god", Kind::Wireless),
    ("God", Kind::Wireless),
    ("-adhocRouting", Kind::Wireless),
    ("-phyType", Kind::Wireless),
    ("-propType", Kind::Wireless),
    ("namtrace-all-wireless", Kind::Wireless),
    ("Agent/AODV*", Kind::Wireless),
    ("Agent/DSR*", Kind::Wireless),
    ("Agent/DSDV*", Kind::Wireless),
    ("Agent/PUMA*", Kind::Wireless),
    ("Agent/MDART*", Kind::Wireless),
    ("Application/Diff*", Kind::Wireless),
    ("Node/MobileNode*", Kind::Wireless),
    ("mrtproto", Kind::Multicast),
    ("allocaddr", Kind::Multicast),
    ("join-group", Kind::Multicast),
    ("Agent/SRM*", Kind::Multicast),
    ("Agent/PGM*", Kind::Multicast),
    ("Agent/LMS*", Kind::Multicast),
    ("Session/RTP*", Kind::Multicast),
    ("SessionSim", Kind::Multicast),
    ("PLM/*", Kind::Multicast),
    ("-PGM", Kind::Multicast),
    ("Queue/dsRED*", Kind::DiffServ),
    ("dsRED*", Kind::DiffServ),
    ("mpls-node", Kind::Mpls),
    ("Node/MPLS*", Kind::Mpls),
    ("LDP-peer", Kind::Mpls),
    ("Node/MIP*", Kind::MobileIp),
    ("-mobileIP", Kind::MobileIp),
    ("Mac/Csma/Ca", Kind::Contention),
    ("XCP", Kind::Xcp),
    ("Queue/XCP*", Kind::Xcp),
    ("Queue/DropTail/XCPQ", Kind::Xcp),
    ("Agent/TCP/Newreno/XCP", Kind::Xcp),
    ("Agent/TCP/Reno/XCP", Kind::Xcp),
    ("Agent/TCP/FullTcp/Newreno/XCP", Kind::Xcp),
    ("PagePool/*", Kind::WebTraffic),
    ("PackMimeHTTP*", Kind::WebTraffic),
    ("DelayBox", Kind::WebTraffic),
    ("Http/*", Kind::WebTraffic),
    ("Tmix*", Kind::WebTraffic),
    ("TrafficGen/ManyTCP", Kind::WebTraffic),
    ("Network/*", Kind::Emulation),
    ("Agent/Tap", Kind::Emulation),
    ("Agent/rtProto*", Kind::Routing),
    ("rtProto*", Kind::Routing),
    ("src_rting", Kind::Routing),
    ("Agent/Message*", Kind::Messages),
    ("Application/TcpApp", Kind::Messages),
];

/// Returns the unsupported feature that a command indicates if all its words are considered.
pub(crate) fn of_command(words: &[Word]) -> Option<UnsupportedFeature> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match texts[..] {
        [_, "node-config", ..] => node_config(words),
        [_, "rtmodel", ..] => Some(UnsupportedFeature::routing(
            words[1].at,
            "\"rtmodel\": links that fail by a model are not supported; write the times with rtmodel-at",
        )),
        [_, "rtproto", kind @ ("DV" | "LS" | "Manual" | "Algorithmic"), ..] => {
            Some(UnsupportedFeature::routing(
                words[2].at,
                &format!("\"rtproto {kind}\": only static routes are supported; use Static"),
            ))
        }
        _ => None,
    }
}

/// Returns whether a switch of ns is on: whether its value is none of those that mean "off".
pub(crate) fn is_on(value: &str) -> bool {
    !matches!(value, "0" | "false" | "off")
}

/// Returns the unsupported feature that `$ns node-config -option value …` indicates. The command configures wireless
/// nodes unless an option says otherwise; wired nodes need no such command.
fn node_config(words: &[Word]) -> Option<UnsupportedFeature> {
    let known = words[2..].iter().find_map(|word| UnsupportedFeature::of_word(&word.text, word.at));
    let is_wired = |word: &Word| matches!(word.text.as_str(), "-wiredRouting" | "-addressType" | "-reset");
    let unknown = words[2..].iter().find(|word| word.text.starts_with('-') && !is_wired(word));
    known.or_else(|| {
        unknown.map(|word| {
            UnsupportedFeature::new(Kind::Wireless, &format!("node-config {}", word.text), word.at)
        })
    })
}

/// Methods that ns's C++ code calls during a run, for example with `tcl.evalf("%s recv …")`.
const CALLBACKS: [&str; 17] = [
    "recv",
    "recv-pkt",
    "done",
    "done_data",
    "timeout",
    "resume",
    "process_data",
    "handle",
    "log-loss",
    "unknown-flow",
    "no-slot",
    "arrival",
    "drop",
    "expire",
    "connection-closed",
    "print-delay-stats",
    "sched-stop",
];

/// Methods that only scripts call. A subclass of ns's class may define them and call ns's method with `next`.
const CALLED_BY_SCRIPTS: [&str; 6] = ["init", "start", "stop", "send", "produce", "producemore"];

/// The methods of ns, by class.
const NS_METHODS: &str = include_str!("ns-methods.txt");

/// Returns why a script may not define this method for a class of ns; `None` if it may. With `extends`, the method is
/// defined for a subclass or an object of the class.
pub(crate) fn unsupported_method(class: &Word, method: &Word, extends: bool) -> Option<UnsupportedFeature> {
    let what = || format!("{} of {}", method.text, class.text);
    if CALLBACKS.contains(&method.text.as_str()) {
        return Some(UnsupportedFeature::new(Kind::Callback, &what(), method.at));
    }
    // Old scripts define these two as ns does, and ns itself never calls them.
    let is_of_scripts = matches!(method.text.as_str(), "get-link" | "get-queue");
    let is_free = is_of_scripts || extends && CALLED_BY_SCRIPTS.contains(&method.text.as_str());
    (!is_free && is_of_ns(&class.text, &method.text))
        .then(|| UnsupportedFeature::new(Kind::Replaced, &what(), method.at))
}

/// Returns whether ns has a method of this name for a class or one of its superclasses.
fn is_of_ns(class: &str, method: &str) -> bool {
    let is_above = |above: &str| match above {
        "Link" => class == "SimpleLink" || class == above,
        _ => class == above || class.strip_prefix(above).is_some_and(|rest| rest.starts_with('/')),
    };
    let lines = NS_METHODS.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(above, _)| is_above(above)).any(|(_, methods)| methods.split(' ').any(|own| own == method))
}

/// Names of files in ns's own library that old scripts read with `source`.
pub(crate) const LIBRARY_FILES: [&str; 11] = [
    "timer.tcl",
    "vlan.tcl",
    "ns-mac.tcl",
    "ns-ll.tcl",
    "ns-lan.tcl",
    "ns-lib.tcl",
    "ns-default.tcl",
    "ns-compat.tcl",
    "ns-random.tcl",
    "ns-trace.tcl",
    "ns-queue.tcl",
];

impl Simulator<'_> {
    /// Returns whether hol refuses the script no matter what the rest of it contains.
    pub(crate) fn is_refused(&self) -> bool {
        self.cause.as_ref().is_some_and(UnsupportedFeature::outranks_all_others)
    }

    /// Records a feature that hol does not model; only the most serious one is reported.
    pub(crate) fn refuse(&mut self, cause: UnsupportedFeature) {
        if self.cause.as_ref().is_none_or(|known| cause.is_graver_than(known)) {
            self.cause = Some(cause);
        }
    }

    /// Records the features in a command that hol does not model.
    pub(crate) fn find_unsupported_features(&mut self, words: &[Word]) {
        let checked = match words[0].text.as_str() {
            "new" => words,
            _ => &words[..words.len().min(2)],
        };
        if let Some(cause) = of_command(words) {
            self.refuse(cause);
        }
        for cause in checked.iter().filter_map(|word| UnsupportedFeature::of_word(&word.text, word.at)) {
            self.refuse(cause);
        }
    }

    /// Returns the most serious unsupported feature in the executed commands; `None` if there is none. If the script is
    /// refused for another reason (`is_refused`), the commands that were not executed are searched, too.
    pub fn refusal(&self, is_refused: bool) -> Option<WordError> {
        let unreached = self
            .sources
            .words()
            .filter(|_| is_refused)
            .filter_map(|(word, at)| UnsupportedFeature::of_word(word, at));
        let all = unreached.filter(UnsupportedFeature::outranks_all_others).fold(
            self.cause.clone(),
            |best, cause| match best {
                Some(best) if !cause.is_graver_than(&best) => Some(best),
                _ => Some(cause),
            },
        );
        all.map(UnsupportedFeature::into_error)
    }

    /// Returns whether the script is a fragment: none of its commands, executed or not, creates a simulator.
    pub fn is_fragment(&self) -> bool {
        !self.has_simulator && !self.sources.words().any(|(word, _)| word == "Simulator")
    }
}
