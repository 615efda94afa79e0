# On the router, with hol as $1; what else it is given is to be there. What its queues are goes to /out, by what has happened.
look() { tc qdisc show >"/out/$1"; }
hol=$1
look before
setpriv --bounding-set -net_admin "$hol" live route >/out/unprivileged 2>&1
# Three clients come and go, the last one in the middle of a run; a fourth is silent. Then it is asked to end.
"$hol" live route >/out/served 2>&1 &
route=$!
sleep 0.2
"$hol" live route --listen 0.0.0.0:7641 >/out/second 2>&1
until [ "$(grep -c 'finished\|waiting for the next' /out/served)" = 4 ]; do sleep 0.5; done
look put-back
kill $route
wait $route
# The router dies while a run is under way.
"$hol" live route >/out/killed 2>&1 &
route=$!
until tc qdisc show | grep -q netem; do sleep 0.05; done
sleep 1
look under-way
kill -9 $route
sleep 0.2
look put-back-after-kill
# An earlier run has left something, and somebody has chosen a queue.
tc qdisc add dev link1 root handle 7640: netem delay 5ms
tc qdisc add dev link2 root handle 1: pfifo
"$hol" live route --once >/out/refused 2>&1 &
route=$!
sleep 0.5
look left-over-removed
wait $route
look chosen-left-alone
