//! Executes the commands of Emulab, which begin with `tb-`.

use hol_network::{LinkChange, LossSpec};

use crate::quantity::{address, delay, loss, rate};
use crate::simulator::{Outcome, Simulator};
use crate::tcl::{Word, error_at};

/// The commands of Emulab that are not methods of an object, and their syntax.
pub(crate) const COMMANDS: [(&str, &str); 15] = [
    ("tb-set-link-loss", "tb-set-link-loss $link 0.01, or tb-set-link-loss $from $to 0.01"),
    ("tb-set-lan-loss", "tb-set-lan-loss $lan 0.01"),
    ("tb-set-node-lan-params", "tb-set-node-lan-params $node $lan 40ms 10Mb 0.0"),
    ("tb-set-node-lan-delay", "tb-set-node-lan-delay $node $lan 40ms"),
    ("tb-set-node-lan-bandwidth", "tb-set-node-lan-bandwidth $node $lan 10Mb"),
    ("tb-set-node-lan-loss", "tb-set-node-lan-loss $node $lan 0.01"),
    ("tb-set-lan-simplex-params", "tb-set-lan-simplex-params $lan $node 40ms 10Mb 0.0 40ms 10Mb 0.0"),
    ("tb-set-link-simplex-params", "tb-set-link-simplex-params $link $from 25ms 0.4Mb 0.01"),
    ("tb-set-ip", "tb-set-ip $node 10.1.1.2"),
    ("tb-set-ip-interface", "tb-set-ip-interface $node $neighbour 10.1.1.2"),
    ("tb-set-ip-link", "tb-set-ip-link $node $link 10.1.1.2"),
    ("tb-set-ip-lan", "tb-set-ip-lan $node $lan 10.1.1.2"),
    ("tb-set-node-startcmd", "tb-set-node-startcmd $node \"nginx\""),
    ("tb-set-node-startup", "tb-set-node-startup $node \"nginx\""),
    ("tb-set-node-tarfiles", "tb-set-node-tarfiles $node /usr/local tools.tar"),
];

/// The error for a command that changes a LAN for only one of its members.
const ONE_MEMBER: &str = "this changes the LAN for one node only, but a LAN of hol is the same for all its nodes; give the node its own link with $ns duplex-link";

impl Simulator<'_> {
    /// Executes one of [`COMMANDS`]; `form` is the syntax of the command.
    pub(crate) fn emulab(&mut self, words: &[Word], form: &str) -> Outcome {
        match (words[0].text.as_str(), &words[1..]) {
            ("tb-set-link-loss", [link, share]) => {
                let segment = self.segment(link, true)?;
                self.lose(segment, share)
            }
            ("tb-set-link-loss", [from, to, share]) => {
                let (segment, _) = self.find_link(from, to)?;
                self.lose(segment, share)
            }
            ("tb-set-lan-loss", [lan, share]) => {
                let segment = self.segment(lan, false)?;
                self.lose(segment, share)
            }
            ("tb-set-link-simplex-params", [link, from, time, speed, share]) => {
                let segment = self.segment(link, true)?;
                let line = Some(self.member(segment, from)?);
                self.change_link(segment, line, LinkChange::Delay(delay(time)?));
                self.change_link(segment, line, LinkChange::Rate(rate(speed)?.into()));
                self.change_link(segment, line, LinkChange::Loss(LossSpec::Independent(loss(share)?)));
                Ok(String::new())
            }
            ("tb-set-ip", [node, own]) => self.set_only_address(node, own),
            ("tb-set-ip-interface", [node, neighbour, own]) => {
                let (segment, line) = self.find_link(node, neighbour)?;
                self.set_address(segment, line, own)
            }
            ("tb-set-ip-link", [node, link, own]) => {
                let segment = self.segment(link, true)?;
                let member = self.member(segment, node)?;
                self.set_address(segment, member, own)
            }
            ("tb-set-ip-lan", [node, lan, own]) => {
                let segment = self.segment(lan, false)?;
                let member = self.member(segment, node)?;
                self.set_address(segment, member, own)
            }
            ("tb-set-node-startcmd" | "tb-set-node-startup", [node, command]) => {
                self.start_command(words[0].at, node, command)
            }
            (name, _) if name.starts_with("tb-set-node-lan-") || name == "tb-set-lan-simplex-params" => {
                error_at(words[0].at, format!("{name}: {ONE_MEMBER}"))
            }
            ("tb-set-node-tarfiles", [node, rest @ ..]) => self.set_archives(node, rest),
            _ => error_at(words[0].at, format!("the syntax is {form}")),
        }
    }

    fn lose(&mut self, segment: usize, share: &Word) -> Outcome {
        let loss = LossSpec::Independent(loss(share)?);
        self.change_link(segment, None, LinkChange::Loss(loss));
        Ok(String::new())
    }

    fn set_only_address(&mut self, node: &Word, own: &Word) -> Outcome {
        match self.draft.segments_of(self.node(node)?) {
            &[segment] => self.set_address(segment, self.member(segment, node)?, own),
            segments => error_at(
                node.at,
                format!(
                    "this node is on {} links and LANs; choose one with tb-set-ip-link or tb-set-ip-lan",
                    segments.len()
                ),
            ),
        }
    }

    fn set_address(&mut self, segment: usize, member: usize, word: &Word) -> Outcome {
        let own = address(word)?;
        if !self.draft.set_address(segment, member, own) {
            return error_at(
                word.at,
                format!("another interface already has the address {own}; give this one another"),
            );
        }
        Ok(String::new())
    }
}
