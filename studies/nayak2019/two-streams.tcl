# The simulation of the paper in ns-2, written from its description, because the paper contains no script. One association
# over one link, and a source of constant bit rate.
#   ns two-streams.tcl STREAMS KBIT_PER_S DELAY_MS LOSS SECONDS SEED TRACE
# In ns-2 2.35 an application cannot choose a stream: all user data is sent on stream 0, whatever the number of streams.
foreach {streams rate delay loss seconds seed trace} $argv break
ns-random $seed
# Print the stream number after each chunk.
Trace set show_sctphdr_ 1
set ns [new Simulator]
set trace [open $trace w]
set from [$ns node]
set to [$ns node]
$ns duplex-link $from $to 10Mb ${delay}ms DropTail
foreach {one other} [list $from $to $to $from] {
    $ns queue-limit $one $other 1000
    if {$loss > 0} {
        set lossy [new ErrorModel]
        $lossy unit pkt
        $lossy set rate_ $loss
        $lossy ranvar [new RandomVariable/Uniform]
        $lossy drop-target [new Agent/Null]
        $ns link-lossmodel $lossy $one $other
    }
}
set sender [new Agent/SCTP]
set receiver [new Agent/SCTP]
$ns attach-agent $from $sender
$ns attach-agent $to $receiver
foreach agent [list $sender $receiver] {
    $agent set numOutStreams_ $streams
    $agent set dataChunkSize_ 1468
    $agent set mtu_ 1500
    $agent set initialRwnd_ 262144
}
$ns connect $sender $receiver
set source [new Application/Traffic/CBR]
$source set packetSize_ 1452
$source set rate_ ${rate}kb
$source attach-agent $sender
$ns trace-queue $from $to $trace
$ns at 0 "$source start"
$ns at $seconds "finish"
proc finish {} {
    global ns trace
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
