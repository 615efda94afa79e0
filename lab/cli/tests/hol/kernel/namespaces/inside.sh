# On a machine with this host's files: HOL is hol.
look() {
    { ip link; ip route; tc qdisc show; (cd /proc/sys/net/ipv4 && grep . tcp_sack ip_forward tcp_no_metrics_save); } >"$1" 2>&1
}
here() { "$@" --world live:namespaces; }
echoes="--workload echo --repetitions 1"
look before
here HOL run measured.toml --out measured --records --series 100ms >said 2>&1
here HOL trace tcp $echoes --count 20 --loss 5% --pcap run.pcapng >traced 2>&1
# Somebody may do nothing, but be the root of namespaces of his own.
anybody="setpriv --reuid 1000 --clear-groups"
here $anybody HOL compare tcp --count 10 --repetitions 1 >unprivileged 2>&1
here $anybody unshare --map-root-user --net HOL compare tcp udp $echoes --rate 200/s --count 200 --delay 20ms >rootless 2>&1
# It is ended in the middle of a run.
here timeout --foreground --signal INT 2 HOL compare tcp $echoes --rate 100/s --count 100000 >interrupted 2>&1
sleep 0.3
cat /proc/[0-9]*/cmdline >processes
look after
