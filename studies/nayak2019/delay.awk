# From the first time that data is sent to the first time that it is received, mean in ms: the network's share of a
# message's delay and that of loss recovery. What a message waits before and after it is not in a trace.
$8 != 0 || $11 < 1 { next }
$1 == "+" && $3 == from && !(($9, $11) in sent) { sent[$9, $11] = $2 }
$1 == "r" && $4 == to && !seen[$9, $11]++ { sum += $2 - sent[$9, $11]; count++ }
END { printf "%.6f\n", 1000 * sum / count }
