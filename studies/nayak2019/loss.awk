# Share of the packets sent by the hosts, including acknowledgments, that were dropped, in percent.
$1 == "+" && !seen[$12]++ { sent++ }
$1 == "d" { dropped++ }
END { printf "%.6f\n", 100 * dropped / sent }
