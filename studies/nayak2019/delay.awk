# Mean time in ms between the first transmission of data and its first reception: the network's share of a message's
# delay, and that of loss recovery. A trace does not contain how long a message waits before and after this.
$8 != 0 || $11 < 1 { next }
$1 == "+" && $3 == from && !(($9, $11) in sent) { sent[$9, $11] = $2 }
$1 == "r" && $4 == to && !seen[$9, $11]++ { sum += $2 - sent[$9, $11]; count++ }
END { printf "%.6f\n", 1000 * sum / count }
