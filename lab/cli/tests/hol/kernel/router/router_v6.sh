# On the router, with hol as $1, over IPv6.
tc qdisc show >/out/before
"$1" live route --listen '[::]:7640' --once >/out/served 2>&1
tc qdisc show >/out/after
