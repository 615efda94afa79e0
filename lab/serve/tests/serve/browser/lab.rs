//! A server, and a browser that shows its pages.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::hol_serve;

/// Maximum time to wait; no test depends on how long an action takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program, and waits for the first line of output for which `wanted` returns a value.
fn start(command: &mut Command, wanted: impl Fn(&str) -> Option<String>) -> (Process, String) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child =
        child.unwrap_or_else(|error| panic!("{command:?}: {error} (packages chromium and chromium-driver)"));
    let mut lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
    let found =
        lines.by_ref().map_while(Result::ok).find_map(|line| wanted(&line)).expect("it says where it is");
    // Reads the rest of the output, because a program without a reader would end.
    std::thread::spawn(move || lines.for_each(drop));
    (Process(child), found)
}

/// A server without experiments, and a browser.
pub struct Lab {
    pub browser: Client,
    pub address: String,
    state: TempDir,
    _server: Process,
    _driver: Process,
}

impl Lab {
    /// Opens a server and a browser whose user may prefer dark colours.
    pub async fn open(is_dark: bool) -> Self {
        let state = tempfile::tempdir().expect("a directory can be made");
        let (server, address) = start(
            hol_serve().args(["--listen", "127.0.0.1:0", "--state"]).arg(state.path().join("lab")),
            |line| line.starts_with("http://").then(|| line.trim_end_matches('/').to_owned()),
        );
        let (driver, port) = start(Command::new("chromedriver").arg("--port=0"), |line| {
            line.strip_prefix("ChromeDriver was started successfully on port ")?
                .strip_suffix('.')
                .map(str::to_owned)
        });
        let log = state.path().join("browser.log");
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1280,1000",
            "--enable-logging",
            "--hide-scrollbars",
        ];
        let mut arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
        arguments.push(format!("--log-file={}", log.display()));
        arguments.push(format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark)));
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": arguments } });
        let Value::Object(wanted) = wanted else { unreachable!("it is an object") };
        let address_of_driver = format!("http://127.0.0.1:{port}");
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let browser =
            builder.capabilities(wanted).connect(&address_of_driver).await.expect("the browser starts");
        Self { browser, address, state, _server: server, _driver: driver }
    }

    pub async fn go(&self, path: &str) {
        self.browser.goto(&format!("{}{path}", self.address)).await.expect("the page is there");
    }

    /// Waits until `script`, an expression of JavaScript, is true.
    pub async fn until(&self, script: &str) {
        let expression = format!("try {{ return !!({script}); }} catch (error) {{ return false; }}");
        let tries = PATIENCE.as_millis() / 50;
        for _ in 0..tries {
            if self.browser.execute(&expression, vec![]).await.expect("it is an expression")
                == Value::Bool(true)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let page = self.browser.execute("return document.body.innerText", vec![]).await;
        panic!("never true: {script}\n{page:?}");
    }

    pub async fn ask(&self, script: &str) -> Value {
        self.browser.execute(&format!("return {script}"), vec![]).await.expect("it is an expression")
    }

    /// Clicks on the element of a selector when it exists.
    pub async fn click(&self, selector: &str) {
        self.until(&format!("(own => own && own.getClientRects().length && !own.disabled)(document.querySelector({selector:?}))")).await;
        let found = self.at_rest(Locator::Css(selector)).await;
        found.click().await.unwrap_or_else(|e| panic!("{selector}: {e}"));
    }

    /// Clicks on the button with this label.
    pub async fn press(&self, words: &str) {
        let path = format!("//button[normalize-space()={words:?} and not(@hidden)]");
        let found = self.at_rest(Locator::XPath(&path)).await;
        found.click().await.unwrap_or_else(|e| panic!("{words}: {e}"));
    }

    /// Returns an element when its position no longer changes, because content that is loaded above it would move it before a click.
    async fn at_rest(&self, locator: Locator<'_>) -> Element {
        let mut place = None;
        for _ in 0..PATIENCE.as_millis() / 50 {
            if let Ok(found) = self.browser.find(locator).await
                && let Ok(now) = found.rectangle().await
                && place.replace(now) == Some(now)
            {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never still: {locator:?}");
    }

    /// Replaces the text of a field, and leaves the field.
    pub async fn fill(&self, selector: &str, text: &str) {
        self.until(&format!("document.querySelector({selector:?})")).await;
        let field = self.browser.find(Locator::Css(selector)).await.expect("it is there");
        let [control, null, tab] = [Key::Control, Key::Null, Key::Tab].map(char::from);
        field.send_keys(&format!("{control}a{null}{text}{tab}")).await.expect("it is a field");
    }

    /// Sends keys to the element that has the focus.
    pub async fn keys(&self, keys: &str) {
        let active = self.browser.active_element().await.expect("something has the focus");
        active.send_keys(keys).await.expect("it takes keys");
    }

    /// Moves the focus to the element of a selector.
    pub async fn focus_on(&self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?})")).await;
        self.ask(&format!("document.querySelector({selector:?}).focus()")).await;
    }

    /// Sets the width of the window, and checks that the page fits into it.
    pub async fn fits(&self, width: u32, height: u32) {
        self.browser.set_window_size(width, height).await.expect("it has a size");
        let over = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        self.until(&format!("innerWidth <= {width} && {over} <= 0")).await;
    }

    /// Submits an experiment file, and shows the page of the experiment when it is done.
    pub async fn done(&self, text: &str) {
        self.go("/").await;
        let body = json!({ "text": text }).to_string();
        let script = format!(
            "const done = arguments[0]; fetch('/api/experiments', {{ method: 'POST', headers: {{ 'content-type': 'application/json' }}, body: {} }})
            .then(own => own.json()).then(own => done(own.id))",
            Value::from(body)
        );
        let id = self.browser.execute_async(&script, vec![]).await.expect("it is submitted");
        self.go(&format!("/experiments/{id}")).await;
        self.until("document.querySelector('#state').textContent === 'done'").await;
    }

    /// Checks the accessibility of the page with axe-core.
    pub async fn accessible(&self, page: &str) {
        let axe = std::fs::read_to_string(axe()).expect("axe-core is there: run scripts/build-web");
        self.browser.execute(&axe, vec![]).await.expect("axe is a script");
        let script = "const done = arguments[0]; axe.run().then(({ violations }) => done(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)))";
        let found = self.browser.execute_async(script, vec![]).await.expect("axe ends");
        assert_eq!(found, json!([]), "{page}");
    }

    /// Checks that the console is empty: no error, and no violation of the content security policy.
    pub async fn close(self) {
        let log = self.state.path().join("browser.log");
        self.browser.close().await.expect("the browser ends");
        let log = std::fs::read_to_string(log).expect("the browser keeps a log");
        // Ignores messages whose source has no address: they are caused by axe-core, which this test injects and which tries inline styles.
        let of_the_page = |line: &&str| line.contains("CONSOLE") && !line.contains("source:  (");
        let said: Vec<&str> = log.lines().filter(of_the_page).collect();
        assert!(said.is_empty(), "{}", said.join("\n"));
    }

    /// Saves a screenshot of the page, if `HOL_PICTURES` names a directory.
    pub async fn picture(&self, name: &str) {
        let Some(directory) = std::env::var_os("HOL_PICTURES") else { return };
        let png = self.browser.screenshot().await.expect("the browser sees it");
        std::fs::write(Path::new(&directory).join(format!("{name}.png")), png)
            .expect("the directory is there");
    }
}

fn axe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("web/node_modules/axe-core/axe.min.js")
}
