//! Experiment files: their meaning, and the messages about mistakes.

use hol_lab::{Experiment, Plan, Repetitions, Source};

const WHOLE: &str = r#"
title = "Delay over loss"
seed = 7
messages = 1005
repetitions = 10
transports = ["tcp", { spec = "sctp:streams=8", label = "SCTP-8" }]
[network]
delay = "20ms"
[workload]
kind = "simco"
rate = "50/s"
[sweep]
"network.loss" = ["0%", "1%", "5%"]
[[zip]]
"workload.rate" = ["1/s", "10/s"]
messages = [100, 1000]
"#;

fn parse(text: &str) -> Result<Experiment, hol_lab::InputError> {
    Experiment::parse("test", &Source::new("test.toml", text))
}

fn mistake(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn transports_are_the_first_axis_and_every_combination_is_a_point() {
    let experiment = parse(WHOLE).unwrap();
    let shown: Vec<String> = experiment.points.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 2 * 3 * 2);
    assert_eq!(shown[0], "test: tcp network.loss=0% messages=100 workload.rate=1/s");
    assert_eq!(shown[1], "test: tcp network.loss=0% messages=1000 workload.rate=10/s");
    assert_eq!(shown[11], "test: SCTP-8 network.loss=5% messages=1000 workload.rate=10/s");
    assert_eq!(experiment.points[1].workload.rate().unwrap().per_second(), 10.0);
}

#[test]
fn a_transport_may_override_keys_of_the_workload() {
    let text = "transports = ['sctp', { spec = 'sctp:streams=2', label = 'two sources', workload = { sources = 2 } }]\n\
                [workload]\nkind = 'oneway'";
    let sources = |text: &str| {
        parse(text).unwrap().points.iter().map(|p| p.workload.source_count()).collect::<Vec<_>>()
    };
    assert_eq!(sources(text), [1, 2]);
    assert_eq!(sources(&format!("{text}\nsources = 3")), [3, 2]);
    let error = parse(&text.replace("sources = 2", "sources = 0")).unwrap_err().to_string();
    assert!(error.contains("`sources` is 0"), "{error}");
    let error = parse(&text.replace("sources = 2", "sorces = 2")).unwrap_err().to_string();
    assert!(error.contains("test.toml:1") && error.contains("unknown key \"sorces\""), "{error}");
    let error = parse(&format!("{text}\n[sweep]\n'workload.sources' = [1, 2]")).unwrap_err().to_string();
    assert!(error.contains("test.toml:1") && error.contains("workload.sources is swept"), "{error}");
}

#[test]
fn every_point_has_its_own_id_and_ids_do_not_depend_on_names() {
    let points = parse(WHOLE).unwrap().points;
    let mut ids: Vec<_> = points.iter().map(|p| p.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), points.len());
    let renamed = WHOLE.replace("SCTP-8", "eight").replace("Delay over loss", "other");
    assert_eq!(parse(&renamed).unwrap().points[11].id, points[11].id);
    assert_ne!(parse(&WHOLE.replace("seed = 7", "seed = 8")).unwrap().points[0].id, points[0].id);
}

#[test]
fn writing_out_a_default_keeps_the_point_id() {
    let short = parse("transports = ['tcp']").unwrap();
    let long = "transports = ['tcp']\nseed = 1\nmessages = 10000\nrepetitions = 10\n[network]\ndelay = '10ms'\n\
                queue = '1000p'\n[workload]\nkind = 'simco'\nrate = '100/s'\narrivals = 'periodic'";
    assert_eq!(parse(long).unwrap().points[0].id, short.points[0].id);
}

#[test]
fn messages_are_the_total_over_the_repetitions() {
    let point = &parse("transports = ['tcp']\nmessages = 1005\n").unwrap().points[0];
    assert_eq!(point.repetitions, Repetitions::fixed(10));
    assert_eq!((0..10).map(|r| point.messages_in(r)).sum::<u64>(), 1005);
}

#[test]
fn repetitions_have_common_random_numbers_over_transports_and_points() {
    let points = parse(WHOLE).unwrap().points;
    let (first, last) = (&points[0], &points[11]);
    assert_eq!(first.seed_of(3), last.seed_of(3));
    assert_ne!(first.seed_of(3), first.seed_of(4));
}

#[test]
fn quick_divides_messages_by_20_but_keeps_100_per_repetition() {
    let text = "transports = ['tcp']\nrepetitions = 2\n[sweep]\nmessages = [150, 1000, 80000]";
    let quick = parse(text).unwrap().quick();
    let messages: Vec<u64> = quick.points.iter().map(|p| p.messages).collect();
    assert_eq!(messages, [150, 200, 4000]);
    assert!(quick.points.iter().all(|p| p.id == p.identity()));
}

#[test]
fn shared_points_are_run_once_and_the_longest_first() {
    let experiment = parse(WHOLE).unwrap();
    let plan = Plan::new([&experiment, &experiment]);
    let wanted = plan.next_runs(&hol_lab::RunResults::default());
    assert_eq!((plan.points().len(), wanted.len()), (24, 120));
    assert!(wanted.is_sorted_by_key(|job| std::cmp::Reverse(job.message_count())));
    assert_eq!(plan.message_count(), 6 * 100 + 6 * 1000);
}

#[test]
fn mistakes_have_a_position_and_a_remedy() {
    let with = |line: &str| mistake(&format!("transports = ['tcp']\n{line}\n"));
    assert_eq!(with("mesages = 5"), "test.toml:2:1: unknown key \"mesages\"; did you mean \"messages\"?");
    assert_eq!(
        with("[network]\ndealy = '10ms'"),
        "test.toml:3:1: unknown key \"dealy\"; did you mean \"delay\"?"
    );
    assert_eq!(
        with("[network]\ndelay = '10'"),
        "test.toml:3:9: \"10\" is not a time such as \"10ms\" (units: ns, us, ms, s, min, h, d)"
    );
    assert_eq!(
        with("[network]\ndelay = 10"),
        "test.toml:3:9: 10 has no unit; write a time such as \"10ms\" (units: ns, us, ms, s, min, h, d)"
    );
    assert!(with("[sweep]\n'network.loss' = ['0%', '200%']").starts_with("test.toml:3:25: \"200%\" is not"));
    assert!(with("[sweep]\n'network.lost' = ['0%']").contains("did you mean \"loss\"?"));
    assert!(with("messages = 5").contains("too few for 10 repetitions"));
    assert!(with("messages = 5").contains("repetitions = 5"));
    let shared = mistake("transports = ['tcp', { spec = 'sctp', label = 'tcp' }]");
    assert!(shared.contains("two transports are called \"tcp\""), "{shared}");
    assert!(with("precision = '1%'").contains("repetitions = \"5..40\""));
    assert!(with("repetitions = '5..40'").starts_with("test.toml:2:15: `repetitions` is a range"));
    let many = with("messages = 1000000\nrepetitions = 1000000\n[sweep]\nseed = [1, 2]");
    assert!(many.starts_with("test.toml:3:15: all points together have 2000000 runs"), "{many}");
    assert!(with("repetitions = 0").starts_with("test.toml:2:15: \"0\" is not a number of repetitions"));
    assert!(with("[workload]\nkind = 'pingpong'\nrate = '1/s'").contains("rate"));
    let nowhere = with("[hosts.srever]\nfilter = 'nftables'");
    assert!(
        nowhere.contains("`hosts` is \"srever\"") && nowhere.contains("as in [hosts.client]"),
        "{nowhere}"
    );
    let idle = with("[hosts.server]\nfilter = 'nftables'\n[workload]\nkind = 'echo'");
    assert!(idle.contains("no middlebox runs on \"server\""), "{idle}");
    let misspelt = with("[workload]\nkind = 'echo'\nrat = '1/s'");
    assert!(misspelt.contains(":1: unknown key \"rat\"; did you mean \"rate\"?"), "{misspelt}");
    let wrong = with("[workload]\nkind = 'echo'\nsize = '1B'\nrate = '1 parsec'");
    assert!(wrong.contains(":8: \"1 parsec\" is not a rate"), "{wrong}");
    assert!(mistake("transports = ['tcp', 'sctp:stream=8']").contains("did you mean \"streams\"?"));
    assert!(mistake("transports = ['tcp', 'sctp:stream=8']").starts_with("test.toml:1:22:"));
    assert!(mistake("transports = []").contains("transports = [\"tcp\""));
    assert!(mistake("seed = 1").contains("transports"));
}

#[test]
fn errors_of_overrides_name_their_option() {
    let mut source = Source::new("test.toml", "transports = ['tcp']");
    source.set("--set network.delay=10", "network.delay", "10").unwrap();
    let error = Experiment::parse("test", &source).unwrap_err().to_string();
    assert!(error.starts_with("--set network.delay=10: 10 has no unit"), "{error}");
}

#[test]
fn an_overridden_key_is_no_longer_swept() {
    let mut source = Source::new("test.toml", WHOLE);
    source.set("--set", "network.loss", "2%").unwrap();
    let experiment = Experiment::parse("test", &source).unwrap();
    assert_eq!(experiment.points.len(), 4);
}

#[test]
fn damaged_files_are_errors_and_never_panics() {
    let mut refused = 0;
    for (at, letter) in WHOLE.char_indices() {
        let rest = &WHOLE[at + letter.len_utf8()..];
        for damaged in
            [WHOLE[..at].to_owned(), format!("{}{rest}", &WHOLE[..at]), format!("{}[{rest}", &WHOLE[..at])]
        {
            if let Err(error) = parse(&damaged) {
                assert!(error.place.starts_with("test.toml:"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > WHOLE.len(), "{refused}");
}

const COMPETING: &str = r#"
transports = ["tcp", "sctp"]
repetitions = 2
messages = 20
[network]
rate = "400kbit"
[workload]
kind = "oneway"
interval = "20ms"
start = "3s"
[[background]]
transport = "tcp:sack=false,recovery=newreno"
[sweep]
"background.count" = [0, 2]
"#;

#[test]
fn a_background_can_be_swept_and_is_greedy_by_default() {
    let points = parse(COMPETING).unwrap().points;
    assert_eq!(points.len(), 4);
    assert_eq!(points[1].to_string(), "test: tcp background.count=2");
    let background = &points[1].background[0];
    assert_eq!((background.count, background.workload.kind.workload().name()), (2, "bulk"));
    assert_ne!(points[0].id, points[1].id);
    let kept = serde_json::to_string(&points[1]).unwrap();
    assert_eq!(serde_json::from_str::<hol_lab::Point>(&kept).unwrap().identity(), points[1].id);
}

#[test]
fn a_background_has_the_transport_of_the_workload_by_default() {
    let text = COMPETING.replace("transport = \"tcp:sack=false,recovery=newreno\"", "messages = 7");
    let points = parse(&text).unwrap().points;
    let (tcp, sctp) = (points[1].scenario(0), points[3].scenario(0));
    assert_eq!(tcp.background[0].transport.to_string(), "tcp");
    assert_eq!(sctp.background[0].transport.to_string(), "sctp");
    assert_eq!(sctp.background[0].messages, Some(7));
    assert_eq!(points[3].competing_flow_count(), 0, "what ends by itself does not compete");
    let kept = serde_json::to_string(&points[3]).unwrap();
    assert_eq!(serde_json::from_str::<hol_lab::Point>(&kept).unwrap().identity(), points[3].id);
}

const CALL: &str = r#"
transports = ["tcp", "sctp"]
[network]
nodes = ["caller", "proxy", "firewall", "callee"]
lans = [{ nodes = ["caller", "proxy", "firewall", "callee"] }]
[workload]
kind = "echo"
from = "caller"
to = "proxy"
[[onward]]
workload = { kind = "simco", from = "proxy", to = "firewall" }
[[onward]]
transport = "tcp:connections=2"
workload = { kind = "echo", from = "proxy", to = "callee" }
"#;

#[test]
fn onward_requests_have_the_transport_of_the_workload_by_default() {
    let points = parse(CALL).unwrap().points;
    let onward = points[1].scenario(0).onward;
    let transports: Vec<String> = onward.iter().map(|onward| onward.transport.to_string()).collect();
    assert_eq!(transports, ["sctp", "tcp:connections=2"]);
    let without = parse(CALL.split("[[onward]]").next().unwrap()).unwrap().points;
    assert_ne!(without[0].id, points[0].id);
    let kept = serde_json::to_string(&points[1]).unwrap();
    assert_eq!(serde_json::from_str::<hol_lab::Point>(&kept).unwrap().identity(), points[1].id);
    let swept = format!("{CALL}[sweep]\n'onward.1.transport' = ['udp', 'sctp']");
    let points = parse(&swept).unwrap().points;
    assert_eq!(points[1].scenario(0).onward[1].transport.to_string(), "sctp");
}

#[test]
fn invalid_onward_requests_are_refused_at_their_position() {
    let broken = |from: &str, to: &str| mistake(&CALL.replace(from, to));
    let unsolicited = broken("from = \"proxy\", to = \"callee\"", "from = \"callee\", to = \"caller\"");
    assert!(
        unsolicited.starts_with("test.toml:12:1: in [[onward]] number 2: \"callee\" receives no request"),
        "{unsolicited}"
    );
    let one_way = broken("kind = \"simco\"", "kind = \"oneway\"");
    assert!(one_way.contains("test.toml:10:1") && one_way.contains("use echo or simco"), "{one_way}");
    let absent = broken("tcp:connections=2", "mptcp");
    assert!(absent.contains("in [[onward]] number 2: the model world does not support mptcp"), "{absent}");
    let misspelt = broken("[[onward]]\nworkload", "[[onward]]\ncount = 3\nworkload");
    assert!(misspelt.contains("unknown key \"count\""), "{misspelt}");
}

#[test]
fn options_that_the_model_lacks_are_refused_by_name() {
    let text = "transports = ['tcp']\n[[background]]\ntransport = 'tcp:metrics_cache=ssthresh'";
    let refused = mistake(text);
    assert!(
        refused.contains("[[background]] number 1: the model world does not support metrics_cache"),
        "{refused}"
    );
    assert!(mistake("transports = ['mptcp']").contains("does not support mptcp; use the kernel world"));
}

#[test]
fn an_invalid_background_is_refused_at_its_position() {
    let broken = |from: &str, to: &str| mistake(&COMPETING.replace(from, to));
    let unknown = broken("[sweep]", "workload = { kind = 'bulk', to = 'sever' }\n[sweep]");
    assert!(
        unknown.starts_with("test.toml:11:1: in [[background]] number 1: `to` is \"sever\""),
        "{unknown}"
    );
    assert!(unknown.contains("client, server"), "{unknown}");
    let paced = broken("[sweep]", "workload = { kind = 'bulk', rate = '5/s' }\n[sweep]");
    assert!(paced.contains("unknown key \"rate\"; known here are size"), "{paced}");
    let empty = broken("[sweep]", "messages = 0\n[sweep]");
    assert!(empty.starts_with("test.toml:11:1: in [[background]] number 1: `messages` is 0"), "{empty}");
    let misspelt = broken("[sweep]", "coutn = 3\n[sweep]");
    assert!(
        misspelt.contains("test.toml:13:1") && misspelt.contains("did you mean \"count\"?"),
        "{misspelt}"
    );
    let nonsense = broken("tcp:sack=false,recovery=newreno", "tpc");
    assert!(nonsense.starts_with("test.toml:12:13") && nonsense.contains("tpc"), "{nonsense}");
}

#[test]
fn a_timeline_changes_the_point_and_has_a_minimum() {
    let of = |line: &str| parse(&format!("transports = ['tcp']\n{line}")).unwrap().points.remove(0);
    let (without, with) = (of(""), of("timeline = '1s'"));
    assert!(without.timeline.is_none() && with.timeline.is_some());
    assert_ne!(without.id, with.id, "runs that are there already have none");
    assert!(mistake("transports = ['tcp']\ntimeline = '10us'").contains("`timeline` must be at least 1ms"));
    // Around an event a timeline is recorded anyway, but a run of 70 s has at most 2,000 intervals.
    let event =
        "network.events = [{ at = '500ms', down = true }]\nworkload = { kind = 'echo', rate = '1000/s' }";
    let [short, long] = ["5000", "700000"].map(|count| {
        parse(&format!("transports = ['tcp']\nmessages = {count}\n{event}")).unwrap().points.remove(0)
    });
    let interval = |point: hol_lab::Point| point.timeline.unwrap().as_secs_f64();
    assert_eq!([interval(short), interval(long)], [0.01, 0.05]);
}

#[test]
fn the_commented_example_of_hello_is_valid_without_its_comment_signs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/hello.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, example) = text.split_once("# [[figure]]").unwrap();
    let figure = format!("{before}[[figure]]{}", example.replace("\n# ", "\n"));
    assert_eq!(parse(&figure).unwrap().figures.len(), 1);
}
