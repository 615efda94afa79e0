# User data that node `to` received, from the first packet that node `from` sent, in kbit/s.
#   hol trace … --ns2 run.tr && awk -v from=0 -v to=1 -v headers=48 -f throughput.awk run.tr
# headers: octets of a packet that do not belong to the message, 48 with IP, SCTP and one chunk.
$8 != 0 || $11 < 1 { next }                     # other flows, and packets without data
$1 == "+" && $3 == from && !started++ { first = $2 }
$1 == "r" && $4 == to && !seen[$9, $11]++ { octets += $6 - headers; last = $2 }
END { printf "%.3f\n", 8 * octets / (last - first) / 1000 }
