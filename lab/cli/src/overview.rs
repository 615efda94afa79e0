//! The output of `hol` and `hol --help`: what it does, three examples, and the commands in groups.

/// The output of `hol` without arguments, at most 25 lines of 100 columns.
pub const OVERVIEW: &str = "\
hol shows what a transport protocol does to your application, in a simulator and on Linux itself.

  hol compare tcp quic sctp:streams=8 --loss 1%       which is faster, by how much, and why
  hol exec tcp mptcp --loss 1% --server nginx --listens 80 -- curl -so page.html http://server/
  hol run experiments/hello.toml                      a sweep from a file, with a report

Usage: hol COMMAND ...      hol help COMMAND, OPTION or KEY explains it; hol list names transports

ask     compare    transports on one path           advise       find where the winner changes
        exec       programs of your own             shell        a shell on a node
        init       write an experiment file         reproduce    a published evaluation
run     run        an experiment file               plan         a file's points, and their cost
        merge      parts of several machines        verify       repeat runs, compare digests
        submit     to a server or a cluster         watch, get   follow it, fetch its results
look    report     draw a report again              trace        packets of one run
        topology   draw a network                   path         a network from a capture
        replay     a workload from a capture        list         transports, options, workloads
worlds  kernel     fetch or build a Linux kernel    live         the other host of a live run
        validate   compare the model with Linux     doctor       what works on this machine
        bench      the speed of hol itself          packetdrill  play scripts of packets
share   share      a report as one HTML file        serve        the lab in a browser
        simco      a firewall that takes requests   help         explain a word
        completions, manual

Exit codes: 0 done, 1 failed, 2 usage.
";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::OVERVIEW;
    use crate::Cli;

    #[test]
    fn overview_fits_on_one_screen_and_has_every_command() {
        assert!(OVERVIEW.lines().count() <= 25 && OVERVIEW.lines().all(|line| line.len() <= 100));
        let is_named = |name: &str| OVERVIEW.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(is_named(command.get_name()), "{}", command.get_name());
        }
    }
}
