# On the client, with hol as $1, over IPv6.
ip link set lo up
"$1" compare udp tcp --workload echo --world live --peer server --router router --delay 20ms --count 200 --rate 200/s --repetitions 1 >/out/said 2>&1
sleep 1
