//! Policy files: their rights, and their errors.

use hol_simco::{AgentId, Owner, Policy, PolicyError, Quota, Right};

fn policy(text: &str) -> Policy {
    Policy::parse(text).unwrap()
}

fn agent(policy: &Policy, name: &str) -> AgentId {
    policy.agent(name).unwrap()
}

fn error(text: &str) -> String {
    Policy::parse(text).unwrap_err().to_string()
}

/// Section 8.8.1 of RFC 4540: "typically, only a highly privileged agent will be allowed to issue PDR requests".
#[test]
fn agents_have_all_rights_except_disable_by_default() {
    let policy = policy("[agents.a]\n[agents.b]\nmay = ['disable']");
    let (a, b) = (agent(&policy, "a"), agent(&policy, "b"));
    let usual = [Right::Reserve, Right::Enable, Right::Lifetime, Right::Status, Right::List];
    assert!(usual.into_iter().all(|right| policy.permits(a, right) && !policy.permits(b, right)));
    assert!(!policy.permits(a, Right::Disable) && policy.permits(b, Right::Disable));
    assert_eq!(policy.name(b), Owner::new("b"));
    assert!(policy.anonymous().is_none() && !policy.is_secure_only());
}

/// RFC 3989 section 2.1.5: an agent may access its own rules, those of named agents, or all.
#[test]
fn access_is_to_own_rules_to_listed_agents_or_to_all() {
    let policy =
        policy("[agents.main]\n[agents.backup]\naccess = ['main']\n[agents.operator]\naccess = 'all'");
    let [main, backup, operator] = ["main", "backup", "operator"].map(|name| agent(&policy, name));
    assert!(policy.may_access(backup, main) && !policy.may_access(main, backup));
    assert!(policy.may_access(operator, backup) && !policy.may_access(backup, operator));
    assert_eq!(policy.accessible(main).collect::<Vec<_>>(), [main]);
    assert_eq!(policy.accessible(operator).count(), 3);
}

#[test]
fn an_owner_outside_the_policy_has_no_rights() {
    let mut policy = policy("[agents.a]\n[agents.operator]\naccess = 'all'");
    let gone = policy.owner("gone");
    assert_eq!((policy.owner("gone"), policy.name(gone)), (gone, Owner::new("gone")));
    assert!(!policy.admits(gone) && policy.may_access(agent(&policy, "operator"), gone));
}

#[test]
fn an_agent_keeps_its_id_in_a_new_policy() {
    let earlier = policy("[agents.b]\n[agents.c]\naccess = 'all'");
    let later = policy("anonymous = 'd'\n[agents.a]\naccess = ['c', 'd']\n[agents.c]\n[agents.d]");
    let later = later.as_successor_of(&earlier).unwrap();
    for name in ["b", "c"] {
        assert_eq!(later.agent(name), earlier.agent(name));
    }
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| agent(&later, name));
    assert!(!later.admits(b) && [a, c, d].into_iter().all(|agent| later.admits(agent)));
    assert_eq!((later.anonymous(), later.accessible(a).collect::<Vec<_>>()), (Some(d), vec![c, a, d]));
    assert_eq!(later.accessible(c).collect::<Vec<_>>(), [c]);
    let again = policy("[agents.b]").as_successor_of(&later).unwrap();
    assert_eq!((again.agent("b"), again.agent("d"), again.names().count()), (Some(b), Some(d), 4));
}

/// An error contains the position and the remedy.
#[test]
fn policy_errors_have_a_position_and_advice() {
    let unknown = error("[agents.main]\n[agents.backup]\naccess = ['mian']");
    assert_eq!(unknown, "[agents.backup] access: unknown agent `mian`; did you mean `main`?");
    assert!(error("anonymous = 'nobody'\n[agents.main]").starts_with("anonymous: unknown agent `nobody`"));
    let broken = [
        ("[agents.a]\nmay = ['fly']", "line 2", "fly"),
        ("[agents.a]\naccess = 'some'", "line 2", "\"all\" or a list of agents"),
        ("[agents.a]\ninternal = ['10.0.0.0/40']", "line 2", "10.0.0.0/8"),
        ("[agents.a]\ncolour = 'red'", "line 2", "colour"),
        ("[agents.a]\n[[", "line 2", ""),
    ];
    for (text, place, word) in broken {
        let error = error(text);
        assert!(error.contains(place) && error.contains(word), "{error}");
    }
    let name = "x".repeat(256);
    assert_eq!(Policy::parse(&format!("[agents.{name}]")).unwrap_err(), PolicyError::LongName(name));
}

#[test]
fn a_policy_of_agents_gives_them_all_rights_and_others_none() {
    let policy = Policy::of_agents(["a", "b"]).unwrap();
    let (a, b) = (agent(&policy, "a"), agent(&policy, "b"));
    assert!(policy.permits(a, Right::Disable) && policy.permits(a, Right::Enable));
    assert!(policy.may_access(a, b) && policy.anonymous().is_none());
    let names: Vec<String> = (0..70_000).map(|number| number.to_string()).collect();
    let refused = Policy::of_agents(names.iter().map(String::as_str)).unwrap_err();
    assert_eq!(refused, PolicyError::TooManyAgents(70_000));
}

#[test]
fn the_documented_quotas_are_the_defaults() {
    let document = include_str!("../../../../docs/simco.md");
    let example = document.split("```toml\n[quota]\n").nth(1).unwrap().split("```").next().unwrap();
    let policy = Policy::parse(&format!("[quota]\n{example}\n[agents.alice]\n")).unwrap();
    assert_eq!(*policy.quota(policy.agent("alice").unwrap()), Quota::default());
    assert_eq!(example.lines().count(), 6, "all of them");
}
