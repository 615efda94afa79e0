# Rate on the wire in kbit/s: like throughput.awk, but with every octet of each packet with data, including
# retransmissions.
$8 != 0 || $11 < 1 { next }
$1 == "+" && $3 == from && !started++ { first = $2 }
$1 == "r" && $4 == to { octets += $6; last = $2 }
END { printf "%.3f\n", 8 * octets / (last - first) / 1000 }
