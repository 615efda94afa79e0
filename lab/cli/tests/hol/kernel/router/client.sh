# On the client, with hol as $1 and an experiment as $2.
hol=$1
ip link set lo up
ask() { "$hol" compare "$@" --workload echo --world live --peer server --router router; }
"$hol" run "$2" --out /out/measured --records >/out/said 2>&1 || exit 1
ask udp --count 200 --rate 200/s --repetitions 1 --delay 5ms >/out/compared 2>&1
# Somebody ends it in the middle of a run.
timeout --foreground --signal INT 1 "$hol" compare tcp --count 100000 --repetitions 1 --world live --peer server --router router >/out/interrupted 2>&1
# Its process stands still in the middle of another, and says nothing any more.
"$hol" compare tcp --count 100000 --repetitions 1 --world live --peer server --router router >/out/silent 2>&1 &
sleep 1
kill -STOP $!
sleep 12
kill -KILL $!
sleep 0.5
ask tcp --count 100000 --rate 100/s --repetitions 1 >/out/died 2>&1
sleep 2
ask tcp --count 10 --repetitions 1 >/out/refused 2>&1
sleep 1
