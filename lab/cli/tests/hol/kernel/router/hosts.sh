# On the client, with hol as $1 and an experiment of more hosts as $2.
ip link set lo up
"$1" run "$2" --out /out/measured >/out/said 2>&1
sleep 1
