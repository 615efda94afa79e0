//! Writes a network as an ns script.

use std::fmt::Write;

use hol_base::{ByteCount, Duration, QueueLimit, Ratio};
use hol_network::{
    CodelSpec, Discipline, Distribution, DualPi2Spec, FairSpec, Ip, LinkId, LossSpec, Medium, PieSpec,
    PoliceSpec, RedSpec, Segment, Settings, TokenBucket, Topology,
};
use hol_wire::Address;

use crate::network_builder::{DEFAULT_QUEUE, plain_name};

/// Writes the network as an ns script, from which [`Script::read`](crate::Script::read) reads the same graph. Settings
/// that ns cannot express become comments.
pub fn write(topology: &Topology) -> String {
    write_with_addresses(topology, &|_| true)
}

/// Writes the network as [`write()`] does, but only with the addresses for which `includes_address` returns true;
/// whoever reads the script assigns the other addresses.
pub fn write_with_addresses(topology: &Topology, includes_address: &dyn Fn(Address) -> bool) -> String {
    let mut writer = Writer { topology, includes_address, names: Names::default(), script: String::new() };
    // A write into a string cannot fail.
    let _ = writer.network();
    writer.script
}

/// Writes a topology as an ns script.
struct Writer<'t> {
    topology: &'t Topology,
    includes_address: &'t dyn Fn(Address) -> bool,
    names: Names,
    script: String,
}

/// The names of variables of the script so far.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// Returns `wanted` as a valid name in Tcl, changed if it is already in use.
    fn take(&mut self, wanted: &str) -> String {
        let plain = plain_name(wanted);
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(|name| !self.0.contains(name));
        let free = free.expect("some number is unused");
        self.0.push(free.clone());
        free
    }
}

impl<'t> Writer<'t> {
    fn network(&mut self) -> std::fmt::Result {
        let simulator = self.simulator();
        writeln!(self.script, "set {simulator} [new Simulator]\nsource tb_compat.tcl\n")?;
        let simulator = variable_value(&self.names.take(&simulator));
        let nodes: Vec<String> =
            self.topology.node_names().iter().map(|name| self.names.take(name)).collect();
        for node in &nodes {
            writeln!(self.script, "set {node} [{simulator} node]")?;
        }
        for segment in self.topology.segments() {
            let label = self.names.take(&segment.label);
            let members = segment.interfaces.iter().map(|id| self.topology.interfaces()[usize::from(id.0)]);
            let members: Vec<(String, Address)> = members
                .map(|member| (variable_value(&nodes[usize::from(member.node.0)]), member.address))
                .collect();
            writeln!(self.script)?;
            self.segment(&simulator, segment, &label, &members)?;
        }
        if self.topology.ip() == Ip::V6 {
            writeln!(self.script, "\n# ns has no IPv6; set it in the experiment")?;
        }
        if !self.topology.link_changes().is_empty() {
            writeln!(
                self.script,
                "\n# ns cannot express changes during the run; set them in the experiment"
            )?;
        }
        writeln!(self.script, "\n{simulator} rtproto Static\n{simulator} run")
    }

    /// Returns a name for the simulator's variable that is not in use.
    fn simulator(&self) -> String {
        let labels = self.topology.segments().iter().map(|segment| &segment.label);
        let names: Vec<&String> = self.topology.node_names().iter().chain(labels).collect();
        let numbered = (2..).map(|number| format!("ns{number}"));
        let free = std::iter::once("ns".to_owned()).chain(numbered).find(|name| !names.contains(&name));
        free.expect("some number is unused")
    }

    fn segment(
        &mut self,
        ns: &str,
        segment: &Segment,
        label: &str,
        members: &[(String, Address)],
    ) -> std::fmt::Result {
        let variable = variable_value(label);
        let kind = match segment.medium {
            Medium::Link { up, down } => {
                self.link(ns, label, [&members[0].0, &members[1].0], [up, down])?;
                "link"
            }
            Medium::Lan(line) => {
                self.lan(ns, label, members, line)?;
                "lan"
            }
        };
        let is_included = |address: Address| address.is_ipv4() && (self.includes_address)(address);
        for (node, address) in members.iter().filter(|(_, address)| is_included(*address)) {
            writeln!(self.script, "tb-set-ip-{kind} {node} {variable} {address}")?;
        }
        Ok(())
    }

    fn link(&mut self, ns: &str, label: &str, [from, to]: [&str; 2], lines: [LinkId; 2]) -> std::fmt::Result {
        let [up, down] = lines.map(|line| self.settings(line));
        let (speed, time) = (rate(up), up.delay);
        let red = matches!(up.discipline, Discipline::Red(_));
        let discipline = if red { "RED" } else { "DropTail" };
        writeln!(self.script, "set {label} [{ns} duplex-link {from} {to} {speed} {time} {discipline}]")?;
        let variable = variable_value(label);
        let (there, back) = (loss(up), loss(down));
        if (down.rate, down.delay) != (up.rate, up.delay) || there != back {
            for (node, line, share) in [(from, up, there), (to, down, back)] {
                let (speed, time) = (rate(line), line.delay);
                writeln!(
                    self.script,
                    "tb-set-link-simplex-params {variable} {node} {time} {speed} {}",
                    share.value()
                )?;
            }
        } else if !there.is_zero() {
            writeln!(self.script, "tb-set-link-loss {variable} {}", there.value())?;
        }
        self.queue(&format!("[[{ns} link {from} {to}] queue]"), up, red)?;
        self.queue(&format!("[[{ns} link {to} {from}] queue]"), down, red)?;
        self.write_inexpressible(&format!("{label} from {from}"), up)?;
        self.write_inexpressible(&format!("{label} from {to}"), down)
    }

    fn lan(
        &mut self,
        ns: &str,
        label: &str,
        members: &[(String, Address)],
        line: LinkId,
    ) -> std::fmt::Result {
        let settings = self.settings(line);
        let nodes = members.iter().map(|(node, _)| node.as_str()).collect::<Vec<_>>().join(" ");
        writeln!(
            self.script,
            "set {label} [{ns} make-lan \"{nodes}\" {} {}]",
            rate(settings),
            settings.delay
        )?;
        let share = loss(settings);
        if !share.is_zero() {
            writeln!(self.script, "tb-set-lan-loss {} {}", variable_value(label), share.value())?;
        }
        self.queue(&format!("[{} queue]", variable_value(label)), settings, false)?;
        self.write_inexpressible(label, settings)
    }

    /// Writes the attributes of a queue that differ from ns's defaults; `red` says whether the script has created a RED
    /// queue.
    fn queue(&mut self, queue: &str, settings: &Settings, red: bool) -> std::fmt::Result {
        let mut set =
            |attribute: &str, value: String| writeln!(self.script, "{queue} set {attribute} {value}");
        match settings.queue {
            QueueLimit::Packets(DEFAULT_QUEUE) => {}
            QueueLimit::Packets(limit) => set("limit_", limit.to_string())?,
            QueueLimit::Bytes(limit) => {
                set("queue-in-bytes_", "1".to_owned())?;
                set("limit_", limit.to_string())?;
            }
        }
        match settings.discipline {
            Discipline::Red(spec) => {
                let RedSpec { min, max, weight, drop, gentle, packet, ecn: _ } = spec;
                if !red {
                    set("red_", "1".to_owned())?;
                }
                set("gentle_", u8::from(gentle).to_string())?;
                set("thresh_", packets(min, packet).to_string())?;
                set("maxthresh_", packets(max, packet).to_string())?;
                set("q_weight_", weight.to_string())?;
                set("linterm_", (1.0 / drop.value()).to_string())?;
                set("mean_pktsize_", packet.0.to_string())
            }
            _ if red => set("red_", "0".to_owned()),
            _ => Ok(()),
        }
    }

    /// Writes a comment that lists the settings that ns cannot express.
    fn write_inexpressible(&mut self, place: &str, settings: &Settings) -> std::fmt::Result {
        let Settings { jitter, loss, duplicate, reorder, reorder_by, corrupt, mtu, overhead, .. } = settings;
        let Settings { jitter_distribution, jitter_correlation, police, channel, .. } = settings;
        let mut unsaid = Vec::new();
        if *jitter > Duration::ZERO {
            unsaid.push(format!("jitter {jitter}"));
        }
        if *jitter_distribution != Distribution::Uniform {
            unsaid.push(format!("jitter_distribution {jitter_distribution}"));
        }
        match loss {
            LossSpec::Independent(_) => {}
            LossSpec::Bursts(_) | LossSpec::TimedBursts(_) => unsaid.push("loss in bursts".to_owned()),
            LossSpec::Packets(_) => unsaid.push("loss of packets with given numbers".to_owned()),
        }
        let shares = [
            ("jitter_correlation", *jitter_correlation),
            ("duplicate", *duplicate),
            ("corrupt", *corrupt),
            ("reorder", *reorder),
        ];
        unsaid.extend(
            shares
                .iter()
                .filter(|(_, share)| !share.is_zero())
                .map(|(name, share)| format!("{name} {share}")),
        );
        if *reorder_by > Duration::ZERO {
            unsaid.push(format!("reorder_by {reorder_by}"));
        }
        match settings.discipline {
            Discipline::DropTail => {}
            Discipline::Red(RedSpec { ecn, .. }) => unsaid.extend(ecn.then(|| "red ecn".to_owned())),
            Discipline::Codel(CodelSpec { target, interval, ecn, .. }) => {
                unsaid.push(format!("codel {target} {interval}{}", if ecn { " ecn" } else { "" }));
            }
            Discipline::FairCodel(FairSpec { target, interval, quantum, flows, .. }) => {
                unsaid.push(format!("fq_codel {target} {interval}, {quantum} of {flows} flows in turns"));
            }
            Discipline::Pie(PieSpec { target, update, ecn, .. }) => {
                unsaid.push(format!("pie {target}, every {update}{}", if ecn { " ecn" } else { "" }));
            }
            Discipline::DualPi2(DualPi2Spec { target, step, .. }) => {
                unsaid.push(format!("dualpi2 {target}, step {step}"));
            }
        }
        if let PoliceSpec(Some(TokenBucket { rate, burst })) = police {
            unsaid.push(format!("police at {rate}, {burst}"));
        }
        if channel != Settings::OWN_CHANNEL {
            unsaid.push(format!("channel {channel}"));
        }
        if *mtu != Settings::default().mtu {
            unsaid.push(format!("mtu {mtu}"));
        }
        if *overhead != ByteCount(0) {
            unsaid.push(format!("overhead {overhead}"));
        }
        if unsaid.is_empty() {
            return Ok(());
        }
        writeln!(self.script, "# not expressible in ns: {place}: {}", unsaid.join(", "))
    }

    fn settings(&self, line: LinkId) -> &'t Settings {
        &self.topology.links()[usize::from(line.0)].settings
    }
}

/// Returns the Tcl expression for the value of a variable.
fn variable_value(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { format!("${name}") } else { format!("${{{name}}}") }
}

fn rate(settings: &Settings) -> String {
    settings.rate.to_string().replace("bit", "b")
}

fn loss(settings: &Settings) -> Ratio {
    match settings.loss {
        LossSpec::Independent(ratio) => ratio,
        LossSpec::Bursts(_) | LossSpec::TimedBursts(_) | LossSpec::Packets(_) => Ratio::ZERO,
    }
}

/// Converts a threshold to packets of size `packet`, the unit of ns.
fn packets(threshold: QueueLimit, packet: ByteCount) -> f64 {
    match threshold {
        QueueLimit::Packets(packets) => packets as f64,
        QueueLimit::Bytes(octets) => octets as f64 / packet.0 as f64,
    }
}
