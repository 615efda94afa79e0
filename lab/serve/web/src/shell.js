// A terminal on the nodes of an experiment: a transcript, and an input line. Virtual time stops while the user types.

import { $, h, say } from "./dom.js";
import { request, get, post } from "./api.js";

const MAX_LENGTH = 200_000;

export class Shell {
  // `choice` selects the point whose network the terminal opens.
  constructor(path, choice) {
    this.path = `${path}/shell`;
    this.choice = choice;
    this.nextNumber = 0;
    this.history = [];
    this.historyIndex = 0;
    this.transcript = $("#shell-said");
    this.input = $("#shell-line");
    $("#shell-open").addEventListener("submit", (event) => this.run(event, () => this.open()));
    $("#shell-form").addEventListener("submit", (event) => this.run(event, () => this.send()));
    $("#shell-interrupt").addEventListener("click", (event) => this.run(event, () => post(`${this.path}/interrupt`)));
    $("#shell-end").addEventListener("click", (event) => this.run(event, () => request("DELETE", this.path)));
    this.input.addEventListener("keydown", (event) => this.keyDown(event));
  }

  async run(event, action) {
    event.preventDefault();
    try {
      say("", "#shell-trouble");
      await action();
    } catch (error) {
      say(error.message, "#shell-trouble");
    }
  }

  async open() {
    say("Starting a kernel …", "#shell-trouble");
    const { index } = await this.choice.chosen();
    this.show(await post(this.path, { point: index }));
    say("", "#shell-trouble");
    this.input.focus();
  }

  // The output may arrive before the response, so the line counts as sent until the request fails.
  async send() {
    const line = this.input.value;
    const was = this.isBusy;
    this.input.value = "";
    this.setBusy(true);
    try {
      await post(`${this.path}/line`, { line });
    } catch (error) {
      this.input.value = line;
      this.setBusy(was);
      throw error;
    }
    if (line.trim() && this.history.at(-1) !== line) this.history.push(line);
    this.historyIndex = this.history.length;
  }

  // Arrow keys select earlier lines; Ctrl+C in an empty line interrupts the command.
  keyDown(event) {
    const turn = this.historyIndex + { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (turn >= 0 && turn <= this.history.length) {
      event.preventDefault();
      this.historyIndex = turn;
      this.input.value = this.history[turn] ?? "";
    }
    const chosen = this.input.selectionStart !== this.input.selectionEnd;
    if (event.ctrlKey && event.key === "c" && !chosen && !this.input.value) this.run(event, () => post(`${this.path}/interrupt`));
  }

  // Loads the terminal when it is shown for the first time.
  async start() {
    await this.loadTranscript();
    await this.files();
    await this.choice.load();
  }

  // Loads the transcript that the server keeps; events add new entries.
  async loadTranscript() {
    this.show(await get(this.path));
  }

  show({ is_open: isOpen, entries }) {
    this.transcript.replaceChildren();
    this.nextNumber = entries[0]?.at ?? 0;
    this.showOpen(isOpen);
    for (const entry of entries) this.addEntry(entry);
  }

  // Adds an entry. If it has another number than expected, entries were missed, or another shell was started: loads the transcript again.
  addEntry({ at, said }) {
    if (at !== this.nextNumber) return this.loadTranscript().catch(() => {});
    this.nextNumber += 1;
    const [[kind, what]] = Object.entries(said);
    if (kind === "prompt") this.prompt(what);
    else if (kind === "end") this.end(what);
    else if (kind === "line") this.add("line", `${this.promptText ?? ""}> ${what}\n`);
    else this.add(kind, kind === "note" ? `${what}\n` : what);
    if (kind === "line") this.setBusy(true);
  }

  prompt({ node, now, code, nodes }) {
    this.promptText = `${node} ${now.toFixed(3)} s${code ? ` [${code}]` : ""}`;
    $("#shell-prompt").textContent = `${this.promptText}>`;
    $("#shell-nodes").replaceChildren(...nodes.map((name) => h("button", { type: "button", class: "small", "aria-pressed": String(name === node), onclick: (event) => this.run(event, () => post(`${this.path}/line`, { line: `:node ${name}` })) }, name)));
    this.showOpen(true);
    this.setBusy(false);
  }

  end(why) {
    this.add("note", `${why}\n`);
    this.showOpen(false);
    this.nextNumber = 0;
    this.files();
  }

  setBusy(is) {
    this.isBusy = is;
    $("#shell-interrupt").disabled = !is;
    for (const button of $("#shell-nodes").children) button.disabled = is;
  }

  showOpen(isOpen) {
    $("#shell-open").hidden = isOpen;
    $("#shell-live").hidden = !isOpen;
    this.transcript.hidden = !isOpen && !this.transcript.childNodes.length;
  }

  add(kind, text) {
    const atEnd = this.transcript.scrollHeight - this.transcript.scrollTop - this.transcript.clientHeight < 40;
    this.transcript.hidden = false;
    this.transcript.append(kind === "out" ? text : h("span", { class: `said-${kind}` }, text));
    while (this.transcript.textContent.length > MAX_LENGTH) this.transcript.firstChild.remove();
    if (atEnd) this.transcript.scrollTop = this.transcript.scrollHeight;
    if (kind === "line" && text.includes(":pcap")) setTimeout(() => this.files(), 500);
  }

  async files() {
    const list = await get(`${this.path}/files/`).catch(() => []);
    // The recorded experiment is empty until the session ends.
    $("#shell-files").replaceChildren(...list.filter(({ size }) => size).map(({ path }) => h("li", {}, h("a", { href: `${this.path}/files/${encodeURIComponent(path)}`, download: "" }, path))));
  }
}
