//! Hostile requests, such as forgeries, path traversal and injections, each with the expected status code. The server
//! has accounts: mallory is in no project of another user, and ann has an experiment.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;
use tower::ServiceExt;

use super::{Lab, TEXT};
use crate::accounts::password::HASHED_PASSWORDS;
use crate::client::ClientNetwork;
use crate::people::{Login, Registration};
use crate::server::Access;

/// The sender of a request.
#[derive(Clone, Copy)]
enum Who {
    Nobody,
    Mallory,
    Ann,
}
use Who::{Ann, Mallory, Nobody};

/// A request: sender, method, path, headers, body.
type HostileRequest<'s> = (Who, &'s str, &'s str, &'s [(&'s str, &'s str)], &'s str);

const JSON: (&str, &str) = ("content-type", "application/json");
const HERE: (&str, &str) = ("host", "127.0.0.1:4540");

/// Description, request, and expected status code. Ann's experiment is number 1.
const TABLE: &[(&str, HostileRequest<'_>, u16)] = &[
    // Forgeries: the name, the key or the page of another user.
    ("no key", (Nobody, "GET", "/api/experiments", &[HERE], ""), 401),
    ("an empty key", (Nobody, "GET", "/api/me", &[HERE, ("cookie", "headofline=")], ""), 401),
    (
        "a key of zeros",
        (
            Nobody,
            "GET",
            "/api/me",
            &[
                HERE,
                ("cookie", "headofline=0000000000000000000000000000000000000000000000000000000000000000"),
            ],
            "",
        ),
        401,
    ),
    ("a key in SQL", (Nobody, "GET", "/api/me", &[HERE, ("cookie", "headofline=' OR 1=1 --")], ""), 401),
    ("an empty token", (Nobody, "GET", "/api/me", &[HERE, ("authorization", "Bearer ")], ""), 401),
    (
        "a token of another kind",
        (Nobody, "GET", "/api/me", &[HERE, ("authorization", "Basic cm9vdDpyb290")], ""),
        401,
    ),
    (
        "an unsigned JWT",
        (
            Nobody,
            "GET",
            "/api/me",
            &[HERE, ("authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.")],
            "",
        ),
        401,
    ),
    (
        "a wrong token beside a right session",
        (Ann, "GET", "/api/me", &[HERE, ("authorization", "Bearer x")], ""),
        401,
    ),
    ("a login without a password", (Nobody, "POST", "/api/login", &[HERE, JSON], r#"{"name":"ann"}"#), 422),
    (
        "a login with a wrong password",
        (Nobody, "POST", "/api/login", &[HERE, JSON], r#"{"name":"ann","password":"guess"}"#),
        401,
    ),
    (
        "a login of nobody",
        (Nobody, "POST", "/api/login", &[HERE, JSON], r#"{"name":"nobody","password":"guess"}"#),
        401,
    ),
    (
        "a login of the local user",
        (Nobody, "POST", "/api/login", &[HERE, JSON], r#"{"name":"local","password":""}"#),
        401,
    ),
    (
        "an account of the local user",
        (Nobody, "POST", "/api/users", &[HERE, JSON], r#"{"name":"Local","mail":"","password":"12345678"}"#),
        409,
    ),
    (
        "an account that is taken, in capitals",
        (Nobody, "POST", "/api/users", &[HERE, JSON], r#"{"name":"ANN","mail":"","password":"12345678"}"#),
        409,
    ),
    (
        "an account that makes itself administrator",
        (
            Nobody,
            "POST",
            "/api/users",
            &[HERE, JSON],
            r#"{"name":"eve","mail":"","password":"12345678","is_administrator":true}"#,
        ),
        422,
    ),
    (
        "an owner that is given",
        (
            Mallory,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text":"transports=['tcp']","owner":"ann"}"#,
        ),
        422,
    ),
    (
        "a state that is given",
        (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], r#"{"state":"done"}"#),
        422,
    ),
    (
        "another's project",
        (
            Mallory,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text":"transports=['tcp']","project":"alpha"}"#,
        ),
        404,
    ),
    ("another's experiment", (Mallory, "GET", "/api/experiments/1", &[HERE], ""), 404),
    (
        "another's experiment, to be ended",
        (Mallory, "POST", "/api/experiments/1/terminate", &[HERE], ""),
        404,
    ),
    ("another's shell, to be read", (Mallory, "GET", "/api/experiments/1/shell", &[HERE], ""), 404),
    (
        "another's shell, to be typed into",
        (Mallory, "POST", "/api/experiments/1/shell/line", &[HERE, JSON], r#"{"line":"id"}"#),
        404,
    ),
    ("another's shell, to be opened", (Mallory, "POST", "/api/experiments/1/shell", &[HERE], ""), 404),
    ("a shell where programs may not run", (Ann, "POST", "/api/experiments/1/shell", &[HERE], ""), 403),
    (
        "two lines in one",
        (Ann, "POST", "/api/experiments/1/shell/line", &[HERE, JSON], "{\"line\":\"a\\nb\"}"),
        400,
    ),
    (
        "a file beside those of a shell",
        (Ann, "GET", "/api/experiments/1/shell/files/..%2Flab.db", &[HERE], ""),
        404,
    ),
    ("a project approved by its founder", (Mallory, "POST", "/api/projects/gamma/approve", &[HERE], ""), 404),
    (
        "a method in a header",
        (Ann, "POST", "/api/experiments/1", &[HERE, ("x-http-method-override", "DELETE")], ""),
        405,
    ),
    (
        "a way around in a header",
        (Nobody, "GET", "/api/me", &[HERE, ("x-forwarded-for", "127.0.0.1"), ("x-real-ip", "127.0.0.1")], ""),
        401,
    ),
    (
        "another path in a header",
        (
            Nobody,
            "GET",
            "/api/me",
            &[HERE, ("x-original-url", "/web/page.css"), ("x-rewrite-url", "/web/page.css")],
            "",
        ),
        401,
    ),
    // Requests from another site (CSRF), or to another host name (DNS rebinding).
    (
        "a form of another site",
        (Ann, "POST", "/api/experiments/1/terminate", &[HERE, ("origin", "https://evil.example")], ""),
        403,
    ),
    (
        "a page without an origin",
        (Ann, "POST", "/api/experiments/1/terminate", &[HERE, ("origin", "null")], ""),
        403,
    ),
    (
        "an origin with our name in front",
        (
            Ann,
            "POST",
            "/api/experiments/1/terminate",
            &[HERE, ("origin", "http://127.0.0.1:4540.evil.example")],
            "",
        ),
        403,
    ),
    (
        "our address, another port",
        (Ann, "POST", "/api/experiments/1/terminate", &[HERE, ("origin", "http://127.0.0.1:8080")], ""),
        403,
    ),
    (
        "our own name without TLS",
        (Ann, "POST", "/api/experiments/1/terminate", &[HERE, ("origin", "http://127.0.0.1:4540")], ""),
        403,
    ),
    (
        "a scheme of its own",
        (Ann, "POST", "/api/experiments/1/terminate", &[HERE, ("origin", "chrome://127.0.0.1:4540")], ""),
        403,
    ),
    (
        "a browser that says cross-site",
        (Ann, "POST", "/api/experiments/1/terminate", &[HERE, ("sec-fetch-site", "cross-site")], ""),
        403,
    ),
    (
        "a browser that says same-site",
        (Ann, "POST", "/api/experiments/1/terminate", &[HERE, ("sec-fetch-site", "same-site")], ""),
        403,
    ),
    (
        "JSON in a plain form",
        (Ann, "POST", "/api/experiments", &[HERE, ("content-type", "text/plain")], r#"{"text":"x"}"#),
        415,
    ),
    (
        "a form",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, ("content-type", "application/x-www-form-urlencoded")],
            "text=x",
        ),
        415,
    ),
    ("JSON without a type", (Ann, "POST", "/api/experiments", &[HERE], r#"{"text":"x"}"#), 415),
    ("a name that points here", (Ann, "GET", "/api/me", &[("host", "evil.example")], ""), 421),
    ("the same with our port", (Ann, "GET", "/", &[("host", "evil.example:4540")], ""), 421),
    ("localhost in front of a name", (Ann, "GET", "/api/me", &[("host", "localhost.evil.example")], ""), 421),
    ("an address in a name", (Ann, "GET", "/api/me", &[("host", "127.0.0.1.evil.example")], ""), 421),
    ("no host", (Ann, "GET", "/api/me", &[], ""), 400),
    ("two hosts", (Ann, "GET", "/api/me", &[HERE, ("host", "evil.example")], ""), 400),
    ("a host that is none", (Ann, "GET", "/api/me", &[("host", "a b")], ""), 400),
    ("a whole URL of elsewhere", (Ann, "GET", "http://evil.example/api/me", &[HERE], ""), 421),
    // Path traversal.
    ("dots", (Ann, "GET", "/api/experiments/1/files/../../../lab.db", &[HERE], ""), 404),
    ("encoded dots", (Ann, "GET", "/api/experiments/1/files/%2e%2e/%2e%2e/%2e%2e/lab.db", &[HERE], ""), 404),
    ("encoded slashes", (Ann, "GET", "/api/experiments/1/files/..%2f..%2f..%2flab.db", &[HERE], ""), 404),
    ("twice encoded dots", (Ann, "GET", "/api/experiments/1/files/%252e%252e/lab.db", &[HERE], ""), 404),
    ("backslashes", (Ann, "GET", "/api/experiments/1/files/..%5c..%5clab.db", &[HERE], ""), 404),
    ("a path from the root", (Ann, "GET", "/api/experiments/1/files//etc/passwd", &[HERE], ""), 404),
    (
        "an encoded path from the root",
        (Ann, "GET", "/api/experiments/1/files/%2fetc%2fpasswd", &[HERE], ""),
        404,
    ),
    ("a NUL", (Ann, "GET", "/api/experiments/1/files/points.csv%00.html", &[HERE], ""), 404),
    ("what is no UTF-8", (Ann, "GET", "/api/experiments/1/files/%ff%fe", &[HERE], ""), 404),
    ("a symbolic link", (Ann, "GET", "/api/experiments/1/files/link", &[HERE], ""), 404),
    ("through a linked directory", (Ann, "GET", "/api/experiments/1/files/etc/passwd", &[HERE], ""), 404),
    ("a way out of the bundle", (Nobody, "GET", "/web/../../Cargo.toml", &[HERE], ""), 404),
    ("an encoded way out of the bundle", (Nobody, "GET", "/web/%2e%2e%2fCargo.toml", &[HERE], ""), 404),
    ("a way out of a link", (Nobody, "GET", "/shared/../lab.db", &[HERE], ""), 404),
    // Invalid numbers and names.
    ("a negative number", (Ann, "GET", "/api/experiments/-1", &[HERE], ""), 404),
    ("a number beyond 64 bits", (Ann, "GET", "/api/experiments/99999999999999999999", &[HERE], ""), 404),
    ("SQL for a number", (Ann, "GET", "/api/experiments/1%20OR%201=1", &[HERE], ""), 404),
    ("SQL for a state", (Ann, "GET", "/api/experiments?state='%20OR%201=1--", &[HERE], ""), 400),
    ("a negative limit", (Ann, "GET", "/api/experiments?limit=-1", &[HERE], ""), 400),
    ("a key that nobody knows", (Ann, "GET", "/api/experiments?order=password", &[HERE], ""), 400),
    ("a key twice", (Ann, "GET", "/api/experiments?limit=1&limit=2", &[HERE], ""), 400),
    (
        "a name that is a path",
        (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], r#"{"name":"../../x"}"#),
        400,
    ),
    (
        "a name that is an option",
        (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], r#"{"name":"--out=/tmp/x"}"#),
        400,
    ),
    (
        "a name with a header in it",
        (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], "{\"name\":\"x\\r\\nBcc: a\"}"),
        400,
    ),
    ("a study that is a path", (Ann, "POST", "/api/studies/..%2f..%2fetc/run", &[HERE], ""), 404),
    ("a study that is an option", (Ann, "POST", "/api/studies/--out=x/run", &[HERE], ""), 404),
    (
        "a priority beyond all others",
        (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], r#"{"priority":9223372036854775807}"#),
        400,
    ),
    ("no cores", (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], r#"{"cores":0}"#), 400),
    (
        "more cores than a number has",
        (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], r#"{"cores":4294967296}"#),
        422,
    ),
    (
        "a time without end",
        (Ann, "PATCH", "/api/experiments/1", &[HERE, JSON], r#"{"idle_swap":4294967295}"#),
        400,
    ),
    (
        "mail for somebody else, too",
        (
            Nobody,
            "POST",
            "/api/users",
            &[HERE, JSON],
            "{\"name\":\"eve\",\"mail\":\"a@b\\r\\nBcc: c@d\",\"password\":\"12345678\"}",
        ),
        400,
    ),
    // Invalid bodies, and texts that request forbidden resources.
    ("half of a body", (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"#), 400),
    ("a body of nothing", (Ann, "POST", "/api/experiments", &[HERE, JSON], ""), 400),
    ("a list for an object", (Ann, "POST", "/api/experiments", &[HERE, JSON], "[]"), 422),
    ("a number for a text", (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":7}"#), 422),
    (
        "another language",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"","format":"sh"}"#),
        422,
    ),
    ("half of a character", (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"\ud800"}"#), 400),
    (
        "a file of the server",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text":"transports=['tcp']\ntopology='/etc/passwd'"}"#,
        ),
        422,
    ),
    (
        "a program",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text":"transports=['tcp']\n[[program]]\nnode='client'\ncommand='id'"}"#,
        ),
        422,
    ),
    (
        "a root of programs",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"transports=['tcp']\nroot='/'"}"#),
        422,
    ),
    (
        "a script that runs programs of the server",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"set x [exec id]","format":"ns"}"#),
        422,
    ),
    (
        "a script that reads a file",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"source /etc/passwd","format":"ns"}"#),
        422,
    ),
    (
        "a script without end",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"while {1} {}","format":"ns"}"#),
        422,
    ),
    (
        "a message a picosecond",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text":"transports=['tcp']\nmessages=-5"}"#),
        422,
    ),
    // Forbidden resources in values of axes, and worlds that send packets from this machine.
    (
        "a program in a zip",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[zip]\nprogram=[[{node='client',command='x',files={'/x'={from='/usr'}}}]]"}"#,
        ),
        422,
    ),
    (
        "a program in a list of zips",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[[zip]]\nprogram=[[{node='client',command='x',files={'/x'={tar='/usr'}}}]]"}"#,
        ),
        422,
    ),
    (
        "a program in a sweep",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[sweep]\nprogram=[[{node='client',command='id'}]]"}"#,
        ),
        422,
    ),
    (
        "a program's command in a sweep",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[sweep]\n'program.command'=['id','ls']"}"#,
        ),
        422,
    ),
    (
        "a root in a sweep",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[sweep]\nroot=['/etc/shadow']"}"#,
        ),
        422,
    ),
    (
        "a root in a zip beside host",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[zip]\nroot=['host','/nowhere']"}"#,
        ),
        422,
    ),
    (
        "a root in quotes",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text": "transports=['tcp']\n'root'='/'"}"#),
        422,
    ),
    (
        "a program over one transport",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=[{spec='tcp',program=[{node='client',command='id'}]}]"}"#,
        ),
        422,
    ),
    (
        "a workload of programs over one transport",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=[{spec='tcp',workload={kind='programs'}}]"}"#,
        ),
        422,
    ),
    (
        "a trace of the path in a sweep",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[sweep]\n'network.trace'=['/etc/passwd']"}"#,
        ),
        422,
    ),
    (
        "a distribution that is a file",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[network]\njitter='1ms'\njitter_distribution='/etc/passwd'"}"#,
        ),
        422,
    ),
    (
        "a topology in a sweep",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[sweep]\ntopology=['/etc/passwd']"}"#,
        ),
        422,
    ),
    (
        "a program in the lines of a script",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 1ms DropTail\n#hol transports = ['tcp']\n#hol root = '/etc'\n", "format": "ns"}"#,
        ),
        422,
    ),
    (
        "a program of a script",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 1ms DropTail\ntb-set-node-startcmd $a \"id\"\n", "format": "ns"}"#,
        ),
        422,
    ),
    (
        "a world on another machine",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\nworld='live:127.0.0.1:22'"}"#,
        ),
        422,
    ),
    (
        "a world on the machine of metadata",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\nworld='live:169.254.169.254:80'"}"#,
        ),
        422,
    ),
    (
        "a world on this machine's sockets",
        (Ann, "POST", "/api/experiments", &[HERE, JSON], r#"{"text": "transports=['tcp']\nworld='live'"}"#),
        422,
    ),
    (
        "a world in this machine's namespaces",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\nworld='live:namespaces'"}"#,
        ),
        422,
    ),
    (
        "a world over a router",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\nworld='live:granted.example:4547 via 10.0.0.1'"}"#,
        ),
        422,
    ),
    (
        "a world in a sweep",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\n[sweep]\nworld=['model','live:10.0.0.1']"}"#,
        ),
        422,
    ),
    (
        "a kernel that is a path",
        (
            Ann,
            "POST",
            "/api/experiments",
            &[HERE, JSON],
            r#"{"text": "transports=['tcp']\nworld='kernel:../../../etc/passwd'"}"#,
        ),
        422,
    ),
    // Methods and paths that do not exist.
    ("a method that is not done", (Ann, "PUT", "/api/experiments/1", &[HERE], ""), 405),
    ("a trace", (Ann, "TRACE", "/api/me", &[HERE], ""), 405),
    ("a tunnel", (Ann, "CONNECT", "/api/me", &[HERE], ""), 405),
    ("a method of its own", (Ann, "BREW", "/api/me", &[HERE], ""), 405),
    ("a path that is not there", (Ann, "GET", "/.git/config", &[HERE], ""), 404),
    ("somebody else's software", (Ann, "GET", "/wp-login.php", &[HERE], ""), 404),
    ("the database", (Ann, "GET", "/lab.db", &[HERE], ""), 404),
    ("the key of a link guessed", (Nobody, "GET", "/shared/0/report", &[HERE], ""), 404),
    // Repeated requests.
    ("a start of what is queued", (Ann, "POST", "/api/experiments/1/start", &[HERE], ""), 409),
    ("a swap-in of what is queued", (Ann, "POST", "/api/experiments/1/swap-in", &[HERE], ""), 409),
];

/// Creates ann's experiment, with symbolic links that lead out of its results.
pub(super) async fn lab() -> (Lab, String, String) {
    let lab = Lab::open(Access::Accounts);
    let [ann, mallory, root] =
        [("ann", false), ("mallory", false), ("root", true)].map(|(n, is)| lab.account(n, is));
    for (key, name) in [(&ann, "alpha"), (&mallory, "gamma")] {
        lab.post("/api/projects").by(key).json(&json!({ "name": name, "title": "" })).send().await;
    }
    lab.post("/api/projects/alpha/approve").by(&root).send().await;
    let made = lab.post("/api/experiments").by(&ann).json(&json!({ "text": TEXT })).send().await;
    assert_eq!(made.json()["id"], 1);
    let results = lab.server.runner_command(1).unwrap().results();
    std::fs::create_dir_all(&results).unwrap();
    std::os::unix::fs::symlink(lab.server.config.state.join("lab.db"), results.join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", results.join("etc")).unwrap();
    (lab, ann, mallory)
}

#[tokio::test]
async fn each_hostile_request_gets_the_expected_status() {
    let (lab, ann, mallory) = lab().await;
    assert!(TABLE.len() >= 100, "{}", TABLE.len());
    let mut wrong = Vec::new();
    for (what, (who, method, path, headers, body), wanted) in TABLE {
        let mut request =
            Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(*path);
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        request = match who {
            Nobody => request,
            Mallory => request.header("cookie", format!("headofline={mallory}")),
            Ann => request.header("cookie", format!("theme=dark; headofline={ann}")),
        };
        let response = lab.router.clone().oneshot(request.body(Body::from(*body)).unwrap()).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let text = String::from_utf8_lossy(&text);
        if status.as_u16() != *wanted {
            wrong.push(format!("{what}: {status}, not {wanted}: {text}"));
        }
        // No response reveals content of the server's disk, and all have security headers.
        assert!(
            !text.contains("root:x:") && !text.contains("SQLite") && !text.contains("panicked"),
            "{what}: {text}"
        );
        for header in
            ["content-security-policy", "x-content-type-options", "referrer-policy", "cache-control"]
        {
            assert!(headers.contains_key(header), "{what}: no {header}");
        }
        assert!(!headers.contains_key("access-control-allow-origin"), "{what}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // None of the requests changed anything.
    let experiment = lab.get("/api/experiments/1").by(&ann).send().await.json();
    assert_eq!((&experiment["state"], &experiment["name"]), (&json!("queued"), &json!("a-small-one")));
    assert_eq!(lab.get("/api/experiments").by(&ann).send().await.json().as_array().unwrap().len(), 1);
}

/// A forbidden resource is reported with its position, before the server accesses it, by every endpoint that parses a text.
#[tokio::test]
async fn reading_a_text_opens_no_file_or_socket_of_the_server() {
    let (lab, ann, mallory) = lab().await;
    let texts =
        TABLE.iter().filter(|(_, (_, method, path, ..), _)| (*method, *path) == ("POST", "/api/experiments"));
    let texts: Vec<serde_json::Value> =
        texts.filter_map(|(_, (.., body), _)| serde_json::from_str(body).ok()).collect();
    let texts = texts.iter().filter(|body| body["text"].is_string() && body["owner"].is_null());
    let mut count = 0;
    for body in texts.filter(|body| body["project"].is_null() && body["format"] != "sh") {
        count += 1;
        for (who, path) in [(&mallory, "/api/read"), (&ann, "/api/read"), (&ann, "/api/write")] {
            let answer = lab.post(path).by(who).json(body).send().await;
            assert!(!answer.status.is_server_error(), "{body}: {}", answer.text);
            for word in ["os error", "No such file", "root:x:", "ermission denied"] {
                assert!(!answer.text.contains(word), "{body}: {}", answer.text);
            }
        }
    }
    assert!(count > 20, "{count}");
    let granted = json!({ "text": "transports=['tcp']\nworld='live:granted.example:4547'\n" });
    let read = lab.post("/api/read").by(&mallory).json(&granted).send().await.json();
    assert_eq!(read["errors"], json!([]));
    let refused = json!({ "text": "transports=['tcp']\n[sweep]\nroot=['host','/nowhere']\n" });
    let read = lab.post("/api/read").by(&mallory).json(&refused).send().await.json();
    let message = read["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("would have access to files") && read["errors"][0]["line"] == 3, "{read}");
}

/// Many wrong passwords delay further ones from the same address, and the right one is only delayed, too.
#[tokio::test(start_paused = true)]
async fn guessing_passwords_is_slowed_down() {
    let lab = Lab::open(Access::Accounts);
    lab.account("ann", false);
    let log_in = async |address: [u8; 4], forged: &str, login: &serde_json::Value| {
        let begun = tokio::time::Instant::now();
        // Without a proxy, the server ignores an address that the client sends.
        let answer = lab.post("/api/login").from(address).header("x-forwarded-for", forged).json(login);
        (answer.send().await.status.as_u16(), begun.elapsed().as_secs())
    };
    let (here, elsewhere) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    for name in ["ANN", "nobody"] {
        let guess = json!({ "name": name, "password": "a wrong guess" });
        let mut waits = Vec::new();
        for number in 0..12 {
            let (status, seconds) = log_in(here, &format!("192.0.2.{number}"), &guess).await;
            assert_eq!(status, 401, "{name}");
            waits.push(seconds);
        }
        assert_eq!(waits[..8], [0; 8], "{name}");
        assert!(waits[8] > 0 && waits[8..].is_sorted() && waits[11] > waits[8], "{name}: {waits:?}");
    }
    let right = json!({ "name": "ann", "password": "password of ann" });
    assert_eq!(log_in(elsewhere, "", &right).await, (204, 0), "at another address there is no delay");
    let (status, seconds) = log_in(here, "", &right).await;
    assert!(status == 204 && (1..=30).contains(&seconds), "{status} after {seconds} s");
    assert_eq!(log_in(here, "", &right).await, (204, 0), "the right password ends the delay");
    // Trying many names from one address is slowed down, too.
    let mut last = 0;
    for number in 0..64 {
        last = log_in(here, "", &json!({ "name": format!("name{number}"), "password": "password" })).await.1;
    }
    assert!(last > 0);
    // Only a few attempts wait at a time.
    let guess = json!({ "name": "nobody", "password": "a wrong guess" });
    let statuses = futures_util::future::join_all((0..6).map(|_| log_in(here, "", &guess))).await;
    let refused = statuses.iter().filter(|(status, _)| *status == 429).count();
    assert_eq!(refused, 2, "{statuses:?}");
}

/// The time of a response must not reveal whether an account exists.
#[tokio::test]
async fn each_login_and_registration_checks_one_password() {
    let lab = Lab::open(Access::Accounts);
    lab.account("ann", false);
    let network = ClientNetwork("192.0.2.1".to_owned());
    let hashed = |work: &dyn Fn()| {
        HASHED_PASSWORDS.set(0);
        work();
        HASHED_PASSWORDS.get()
    };
    for name in ["ann", "nobody", "local"] {
        let login = Login { name: name.to_owned(), password: "a wrong guess".to_owned() };
        assert_eq!(hashed(&|| drop(lab.server.log_in(&network, &login).unwrap_err())), 1, "{name}");
    }
    for (name, project) in [("ann", None), ("local", None), ("eve", Some("nothing")), ("ANN", Some("alpha"))]
    {
        let new = Registration {
            name: name.to_owned(),
            mail: String::new(),
            password: "12345678".to_owned(),
            project: project.map(str::to_owned),
        };
        assert_eq!(hashed(&|| drop(lab.server.sign_up(&network, &new))), 1, "{name}");
    }
}

/// A script that registers accounts can fill neither the database nor the lists of applicants.
#[tokio::test]
async fn registrations_are_limited_by_address() {
    let lab = Lab::open(Access::Accounts);
    let register = async |number: u32, address| {
        let new = json!({ "name": format!("user{number}"), "mail": "", "password": "12345678" });
        lab.post("/api/users").from(address).json(&new).send().await.status.as_u16()
    };
    let mut seen = Vec::new();
    for number in 0..11 {
        seen.push(register(number, [192, 0, 2, 1]).await);
    }
    assert_eq!(seen, [[201; 10].as_slice(), &[429]].concat());
    assert_eq!(register(99, [192, 0, 2, 2]).await, 201);
}

/// The report may run our script, which cannot send requests to the server; other files can only be downloaded.
#[tokio::test]
async fn files_of_experiments_are_served_in_a_sandbox() {
    let lab = Lab::open(Access::Open);
    let id = lab.submitted().await;
    let results = lab.server.runner_command(id).unwrap().results();
    std::fs::create_dir_all(&results).unwrap();
    std::fs::write(results.join("report.html"), "<script>steal()</script>").unwrap();
    let get = async |rest: &str| lab.get(&format!("/api/experiments/{id}{rest}")).send().await;
    let report = get("/report").await;
    let policy = report.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("sandbox allow-scripts") && !policy.contains("allow-same-origin"), "{policy}");
    assert!(policy.contains("default-src 'none'") && !policy.contains("connect-src"), "{policy}");
    let file = get("/files/report.html").await;
    assert_eq!(file.headers["content-disposition"], "attachment");
    assert_eq!(file.headers["content-security-policy"], "sandbox; default-src 'none'");
}
