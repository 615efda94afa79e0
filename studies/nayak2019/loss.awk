# Packets that were dropped among those that the hosts sent, acknowledgements too, in percent.
$1 == "+" && !seen[$12]++ { sent++ }
$1 == "d" { dropped++ }
END { printf "%.6f\n", 100 * dropped / sent }
