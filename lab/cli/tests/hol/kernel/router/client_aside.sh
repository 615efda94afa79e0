# On the client whose link to the server leads past the router, with hol as $1.
ip link set lo up
"$1" compare udp --count 10 --workload echo --repetitions 1 --world live --peer 10.0.3.2 --router router >/out/said 2>&1
true
