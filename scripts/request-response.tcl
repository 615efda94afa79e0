# A request/response workload over one ns-2 FullTcp connection, the counterpart in `bench-against-ns2`: `rate`
# requests a second of `size` octets, 10 ms one way, Bernoulli loss in each direction, each answered at once.
#   ns request-response.tcl MESSAGES LOSS SEED        prints: messages, mean response time in ms
lassign $argv messages loss seed
set rate 100.0
set size 128

ns-random $seed
set ns [new Simulator]
set client [$ns node]
set server [$ns node]
$ns duplex-link $client $server 100Mb 10ms DropTail
$ns queue-limit $client $server 1000
$ns queue-limit $server $client 1000
foreach {from to} [list $client $server $server $client] {
    set model [new ErrorModel]
    $model set rate_ $loss
    $model unit pkt
    $model ranvar [new RandomVariable/Uniform]
    $ns lossmodel $model $from $to
}

foreach {end node} [list a $client b $server] {
    set agent($end) [new Agent/TCP/FullTcp/Sack]
    $agent($end) set segsize_ 1448
    $agent($end) set window_ 1000
    $agent($end) set minrto_ 0.2
    $agent($end) set nodelay_ true
    $agent($end) set segsperack_ 2
    $ns attach-agent $node $agent($end)
}
$ns connect $agent(a) $agent(b)
$agent(b) listen
set app(a) [new Application/TcpApp $agent(a)]
set app(b) [new Application/TcpApp $agent(b)]
$app(a) connect $app(b)

set sum 0.0
set done 0
proc request {id} {
    global ns app size rate messages
    $app(a) send $size "$app(b) reply [$ns now]"
    if {$id + 1 < $messages} { $ns at [expr {1.0 + ($id + 1) / $rate}] "request [expr {$id + 1}]" }
}
Application/TcpApp instproc reply {started} {
    global app size
    $app(b) send $size "$app(a) finish $started"
}
Application/TcpApp instproc finish {started} {
    global ns sum done messages
    set sum [expr {$sum + [$ns now] - $started}]
    if {[incr done] == $messages} {
        puts "$done [expr {1000 * $sum / $done}]"
        exit 0
    }
}
$ns at 1.0 "request 0"
$ns at [expr {60.0 + 2 * $messages / $rate}] "puts stderr {not finished: $done}; exit 1"
$ns run
