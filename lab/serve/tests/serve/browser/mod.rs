//! The lab in a real browser: a network is drawn, run, watched and compared.

mod lab;

use fantoccini::key::Key;
use lab::Lab;

/// eklund2004, Figure 2.3, in the units of this program.
const FIGURE: [&str; 8] = [
    "set server [$ns node]",
    "set client [$ns node]",
    "set admin [$ns node]",
    "set testlink [$ns duplex-link $server $client 400kb 25ms DropTail]",
    "set lan0 [$ns make-lan \"$server $client $admin\" 100Mb 0s]",
    "set ns [new Simulator]",
    "$ns rtproto Static",
    "$ns run",
];

const PAGES: [&str; 8] =
    ["/", "/studies", "/new#question", "/new#drawing", "/new#text", "/login", "/register", "/account"];

fn in_browser(test: impl AsyncFnOnce(&Lab)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
    runtime.block_on(async {
        let lab = Lab::open().await;
        test(&lab).await;
        lab.close().await;
    });
}

impl Lab {
    /// Focuses a thing of the drawing, by its name.
    async fn focus(&self, label: &str) {
        let script = format!(
            "[...document.querySelectorAll('.drawing [data-id]')].find(own => own.getAttribute('aria-label').startsWith({label:?}))"
        );
        self.until(&script).await;
        self.ask(&format!("{script}.focus()")).await;
    }

    /// A field of what is chosen.
    async fn property(&self, label: &str, text: &str) {
        let script = format!(
            "[...document.querySelectorAll('.properties label')].find(own => own.textContent === {label:?})"
        );
        self.until(&script).await;
        let id = self.ask(&format!("{script}.htmlFor")).await;
        self.fill(&format!("#{}", id.as_str().expect("it is a field")), text).await;
    }

    async fn state(&self, words: &str) {
        self.until(&format!("document.querySelector('#state').textContent === {words:?}")).await;
    }

    /// The text in the editor, once it has `part` in it.
    async fn text(&self, part: &str) -> String {
        const TEXT: &str = "[...document.querySelector('#editor').shadowRoot.querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n')";
        self.until(&format!("({TEXT}).includes({part:?})")).await;
        self.ask(TEXT).await.as_str().expect("it is text").to_owned()
    }
}

/// Draws the network of the thesis, by keyboard alone but for the fields.
async fn draw(lab: &Lab) {
    let delete: char = Key::Delete.into();
    let enter: char = Key::Enter.into();
    lab.go("/new#drawing").await;
    for node in ["node client", "node server"] {
        lab.focus(node).await;
        lab.keys(&delete.to_string()).await;
    }
    lab.until("!document.querySelector('.drawing [data-id]')").await;
    for name in ["server", "client", "admin"] {
        lab.press("Node").await;
        lab.property("Name", name).await;
    }
    lab.press("LAN").await;
    lab.focus("node server").await;
    lab.keys("l").await;
    lab.focus("node client").await;
    lab.keys(&enter.to_string()).await;
    for (label, text) in [("Name", "testlink"), ("Rate", "400kbit"), ("Delay", "25ms")] {
        lab.focus("link ").await;
        lab.keys(&enter.to_string()).await;
        lab.property(label, text).await;
    }
    for node in ["node server", "node client", "node admin"] {
        lab.focus(node).await;
        lab.keys("l").await;
        lab.focus("LAN lan0").await;
        lab.keys(&enter.to_string()).await;
    }
    lab.until("document.querySelector('#faults').hidden === false").await;
    lab.focus("node client").await;
    lab.keys("t").await;
    lab.focus("node server").await;
    lab.keys(&enter.to_string()).await;
    lab.until("document.querySelector('#faults').hidden").await;
    lab.picture("drawing").await;
}

#[test]
#[ignore = "needs chromium and chromium-driver"]
fn figure_2_2_is_drawn_run_watched_swapped_and_compared() {
    in_browser(async |lab| {
        draw(lab).await;
        lab.accessible("drawing").await;

        lab.click("#text-tab").await;
        lab.press("ns script").await;
        let script = lab.text("duplex-link").await;
        for line in FIGURE {
            assert!(script.lines().any(|own| own == line), "{line}\n{script}");
        }
        // Undone and done again, the text is as it was.
        lab.click("#drawing-tab").await;
        for (button, traffic) in [("Undo", 0), ("Redo", 1)] {
            lab.press(button).await;
            lab.until(&format!("document.querySelectorAll('.drawing .traffic').length === {traffic}")).await;
        }
        lab.click("#text-tab").await;
        assert_eq!(lab.text("transports").await, script);

        lab.click("#question-tab").await;
        lab.fill("#messages", "20000000").await;
        lab.until("document.querySelector('#sizes').textContent.includes('40,000,000')").await;
        lab.click("#submit").await;

        lab.state("active").await;
        lab.until("document.querySelector('#progress').value > 0").await;
        lab.browser.refresh().await.expect("it can be loaded again");
        lab.state("active").await;
        lab.press("Swap out").await;
        lab.state("swapped out").await;
        lab.accessible("experiment").await;
        lab.press("Swap in").await;
        lab.state("active").await;
        lab.press("Terminate").await;
        lab.state("terminated").await;

        // A shorter one is done, shown as a picture, and compared with another.
        lab.go("/new#question").await;
        lab.fill("#messages", "2000").await;
        lab.fill("#network-loss", "0.5%, 1%, 2%, 5%").await;
        lab.until("document.querySelector('#sizes').textContent.includes('16,000')").await;
        lab.click("#submit").await;
        lab.state("done").await;
        lab.until("document.querySelector('#points tbody tr') && document.querySelector('#curves canvas')")
            .await;
        lab.ask("document.querySelector('#movie-part').open = true").await;
        lab.until("document.querySelector('#movie .stage')").await;
        lab.press("⇥").await;
        lab.until("document.querySelector('#movie .dropped')").await;
        lab.accessible("moving picture").await;
        lab.picture("movie").await;
        lab.ask("document.querySelector('#with').closest('details').open = true").await;
        lab.fill("#with", "network.delay = 40ms").await;
        lab.press("Run again").await;
        lab.until("location.pathname === '/experiments/3'").await;
        lab.state("done").await;
        lab.go("/").await;
        for id in [2, 3] {
            lab.click(&format!("input[value='{id}']")).await;
        }
        lab.accessible("home").await;
        lab.picture("home").await;
        lab.press("Compare chosen").await;
        lab.until("document.querySelectorAll('#points tbody tr').length === 16 && document.querySelector('#curves canvas')").await;
        lab.accessible("comparison").await;
        lab.picture("compare").await;
    });
}

/// A line on a node of an experiment's network, a link that changes, and the record of it.
#[test]
#[ignore = "needs chromium and chromium-driver, and User-Mode Linux (hol kernel build)"]
fn a_terminal_is_typed_into() {
    in_browser(async |lab| {
        lab.go("/new#question").await;
        lab.until("document.querySelector('#sizes').textContent").await;
        lab.click("#submit").await;
        lab.state("done").await;
        lab.ask("document.querySelector('#shell-part').open = true").await;
        lab.press("Open").await;
        let said =
            |part: &str| format!("document.querySelector('#shell-said').textContent.includes({part:?})");
        lab.until("document.querySelector('#shell-prompt').textContent.startsWith('client 0.000 s')").await;
        let enter = Key::Enter;
        lab.click("#shell-line").await;
        lab.keys(&format!(":link up delay=70ms{}", char::from(enter))).await;
        lab.until("document.querySelector('#shell-interrupt').disabled").await;
        lab.keys(&format!("ping -c1 server{}", char::from(enter))).await;
        lab.until(&said("1 received")).await;
        lab.browser.refresh().await.expect("it can be loaded again");
        lab.ask("document.querySelector('#shell-part').open = true").await;
        lab.until(&said("1 received")).await;
        lab.press("server").await;
        lab.until("document.querySelector('#shell-prompt').textContent.startsWith('server ')").await;
        lab.accessible("terminal").await;
        lab.ask("document.querySelector('#shell-part').scrollIntoView()").await;
        lab.picture("terminal").await;
        lab.press("End").await;
        lab.until("document.querySelector('#shell-files').textContent.includes('recorded.toml')").await;
    });
}

#[test]
#[ignore = "needs chromium and chromium-driver"]
fn what_is_wrong_with_a_text_stands_at_its_line_as_one_types() {
    in_browser(async |lab| {
        lab.go("/new#text").await;
        lab.text("transports").await;
        lab.ask("document.querySelector('#editor').shadowRoot.querySelector('.cm-content').focus()").await;
        let root = lab.browser.find(fantoccini::Locator::Css("#editor")).await.expect("it is there");
        root.click().await.expect("it can be clicked");
        lab.keys("[netwrok]\n").await;
        lab.until("document.querySelector('#faults').textContent.includes('network')").await;
        lab.until("document.querySelector('#editor').shadowRoot.querySelector('.cm-lintRange-error')").await;
        assert_eq!(lab.ask("document.querySelector('#submit').disabled").await, true);
    });
}

#[test]
#[ignore = "needs chromium and chromium-driver"]
fn every_page_is_for_everybody() {
    in_browser(async |lab| {
        for page in PAGES {
            for (width, height) in [(1280, 900), (390, 800)] {
                lab.browser.set_window_size(width, height).await.expect("it has a size");
                lab.go("/login").await;
                lab.go(page).await;
                lab.until("document.readyState === 'complete'").await;
                if page.starts_with("/new") {
                    lab.until("document.querySelector('#sizes').textContent").await;
                }
                lab.accessible(page).await;
                let over = lab
                    .ask("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    .await;
                assert!(
                    over.as_i64().is_some_and(|over| over <= 0),
                    "{page} is wider than {width} px by {over}"
                );
                lab.picture(&format!("{}-{width}", page.replace(['/', '#'], "_"))).await;
            }
        }
    });
}
