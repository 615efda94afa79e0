//! Parts of ns that hol does not model: one sentence with the cause, instead of a list of unknown commands.

const WIRELESS: &str = "wireless nodes are not modelled; hol has wired links and LANs";
const SATELLITE: &str =
    "satellite links and nodes are not modelled; hol has wired links and LANs, with any delay";
const MULTICAST: &str = "multicast is not modelled; hol's flows have one sender and one receiver";
const ROUTING: &str = "only static routes are supported; remove this, or use Static";
const DIFFSERV: &str =
    "DiffServ's queues and policers are not modelled; hol has DropTail, RED, CoDel, sfqCoDel and PIE";
const MPLS: &str = "MPLS is not modelled; hol's routes are static";
const CLASSES: &str = "OTcl's classes and methods are not supported; use procedures";

/// Words that give such a script away, by how they begin.
const CAUSES: [(&str, &str); 35] = [
    ("Mac/802_11", WIRELESS),
    ("Mac/802_15_4", WIRELESS),
    ("Mac/Simple", WIRELESS),
    ("Mac/Tdma", WIRELESS),
    ("Mac/SMAC", WIRELESS),
    ("Phy/Wireless", WIRELESS),
    ("Antenna/", WIRELESS),
    ("Propagation/", WIRELESS),
    ("Channel/Wireless", WIRELESS),
    ("Topography", WIRELESS),
    ("create-god", WIRELESS),
    ("God", WIRELESS),
    ("node-config", WIRELESS),
    ("namtrace-all-wireless", WIRELESS),
    ("Agent/AODV", WIRELESS),
    ("Agent/DSR", WIRELESS),
    ("Agent/DSDV", WIRELESS),
    ("Node/MobileNode", WIRELESS),
    ("Node/SatNode", SATELLITE),
    ("Node/Sat", SATELLITE),
    ("Phy/Sat", SATELLITE),
    ("Mac/Sat", SATELLITE),
    ("satnode", SATELLITE),
    ("node-config-sat", SATELLITE),
    ("mrtproto", MULTICAST),
    ("allocaddr", MULTICAST),
    ("-multicast", MULTICAST),
    ("multicast", MULTICAST),
    ("Agent/rtProto", ROUTING),
    ("rtProto", ROUTING),
    ("Queue/dsRED", DIFFSERV),
    ("dsRED", DIFFSERV),
    ("mpls-node", MPLS),
    ("Class", CLASSES),
    ("instproc", CLASSES),
];

/// Words that have to be whole.
const WHOLE: [&str; 5] = ["Class", "God", "multicast", "rtProto", "instproc"];

/// Returns why a script with this word cannot be run.
pub(crate) fn cause(word: &str) -> Option<String> {
    let is_like = |known: &str| if WHOLE.contains(&known) { word == known } else { word.starts_with(known) };
    let (_, cause) = CAUSES.iter().find(|(known, _)| is_like(known))?;
    Some(format!("{word:?}: {cause}"))
}
