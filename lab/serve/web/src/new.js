// The page of a new experiment: a form, a drawing and a text, which are views of the same experiment.

import { $, $$, embeddedData, h, debounce, say } from "./dom.js";
import { request, post } from "./api.js";
import { Drawing } from "./drawing.js";
import { Editor } from "./editor.js";
import { Question } from "./question.js";
import { languageOf } from "./language.js";
import { formatDuration, formatInteger } from "./words.js";

const keys = embeddedData("keys");
const start = embeddedData("start");

// The current text, its language, and the text that was analysed last in both languages.
const now = { text: start.text, format: start.format, toml: null, ns: null, errors: [] };
// The text from which the drawing was read. All changes of the drawing are applied to this text, so that undoing them restores it.
let base = { text: now.text, format: now.format };
// The text that each view shows. A change in a view of an older text must not replace a newer text.
const seen = { question: null, drawing: null };
let requestNumber = 0;

const question = new Question($("#question-view"), (fields) => applyChange({ question: fields }, now, "question"));
const drawing = new Drawing($("#drawing-view"), (graph) => applyChange({ graph }, base, "drawing"));
const editor = new Editor($("#editor"), { text: now.text, format: now.format, keys, changed: debounce(typed, 150) });

// The selected project, whose files the text may name.
const project = () => $("#send").elements.project?.value || undefined;
$("#project")?.addEventListener("change", () => analyse("project"));

async function typed(text) {
  if (editor.format !== languageOf(text, editor.format)) {
    editor.show(text, languageOf(text, editor.format));
    say(`The text was recognised as ${editor.format === "ns" ? "an ns script" : "an experiment file"}.`);
  }
  Object.assign(now, { text, format: editor.format });
  showFormat();
  await analyse("text");
}

// Applies a change in a view to the text, and shows the result.
async function applyChange(view, { text, format }, from) {
  if (editor.text !== seen[from]) return discardChange(from);
  const ownNumber = (requestNumber += 1);
  try {
    const written = await post("/api/write", { text, format, project: project(), ...view });
    if (ownNumber !== requestNumber) return;
    const both = { toml: written.toml, ns: written.ns };
    const shown = both[now.format] ?? null;
    if (shown === null) say(written.ns_cannot ?? "");
    Object.assign(now, shown === null ? { text: written.toml, format: "toml" } : { text: shown });
    editor.show(now.text, now.format);
    seen[from] = now.text;
    showFormat();
    await analyse(from);
  } catch (error) {
    if (ownNumber === requestNumber) showErrors(error.errors?.length ? error.errors : [{ message: error.message, cure: "" }]);
  }
}

// Discards a change in a view of an older text, and updates the view if the text has no errors.
async function discardChange(from) {
  Object.assign(now, { text: editor.text, format: editor.format });
  await analyse("text");
  const isRead = seen[from] === editor.text;
  say(isRead ? "The text had changed since this view was updated. The view now shows the new text, without your last change." : `The text has errors, so the ${from} shows an older version. Correct the text first; your last change was not applied.`);
}

async function analyse(from) {
  const ownNumber = (requestNumber += 1);
  const asked = { text: now.text, format: now.format };
  try {
    const reading = await post("/api/read", { ...asked, project: project() });
    if (ownNumber !== requestNumber) return;
    Object.assign(now, { toml: reading.toml, ns: reading.ns, cannot: reading.ns_cannot });
    editor.showErrors(reading.errors);
    showErrors(reading.errors);
    if (reading.question && from !== "question") question.show(reading.question);
    if (reading.question) seen.question = asked.text;
    if (reading.graph) seen.drawing = asked.text;
    if (reading.question) $("#line").textContent = reading.question.line;
    if (reading.graph && from !== "drawing") {
      base = asked;
      drawing.show(reading.graph);
    }
    showPlan(reading);
    if (reading.plan && !reading.errors.length) estimate();
  } catch (error) {
    if (ownNumber === requestNumber) showErrors([{ message: error.message, cure: "" }]);
  }
}

const estimate = debounce(async () => {
  const ownNumber = requestNumber;
  const reading = await post("/api/read", { text: now.text, format: now.format, project: project(), estimate: true }).catch(() => null);
  if (reading && ownNumber === requestNumber) showPlan(reading);
}, 1200);

function showErrors(errors) {
  now.errors = errors;
  const list = $("#faults");
  list.hidden = !errors.length;
  list.replaceChildren(...errors.slice(0, 20).map(({ line, column, message, cure }) =>
    h("li", {}, line ? h("button", { type: "button", class: "link", onclick: () => (showTab("text"), editor.goTo(line, column)) }, `line ${line}`) : null, line ? ": " : "", message, cure ? h("span", { class: "soft" }, `; ${cure}`) : "")));
  $("#submit").disabled = errors.length > 0;
  $("#hold").disabled = errors.length > 0;
  say(errors.length ? `${errors.length} error${errors.length === 1 ? "" : "s"} to correct` : "");
}

function showPlan({ plan, is_idle: idle, cannot, mapping, ignored, errors }) {
  const box = $("#plan");
  box.hidden = !plan && !idle;
  if (idle) $("#sizes").textContent = "The experiment has no traffic. While it is swapped in, its nodes run, and you can use them in a terminal.";
  if (plan) {
    const time = plan.min_seconds == null ? "estimating the duration" : plan.max_seconds > plan.min_seconds * 1.05 ? `${formatDuration(plan.min_seconds)} to ${formatDuration(plan.max_seconds)}` : `about ${formatDuration(plan.min_seconds)}`;
    const one = (count, word) => `${formatInteger(count)} ${word}${count === 1 ? "" : "s"}`;
    $("#sizes").textContent = `${one(plan.points, "point")}, ${one(plan.runs, "run")}, ${one(plan.messages, "message")}; ${time}`;
  }
  $("#cannot").replaceChildren(...(cannot ?? []).map(({ what, cure }) => h("li", {}, what, cure ? h("span", { class: "soft" }, `; ${cure}`) : "")));
  $("#ignored").replaceChildren(...(ignored ?? []).map((line) => h("li", {}, line)));
  $("#mapping").hidden = !mapping?.length || errors.length > 0;
  $("#mapping .tables").replaceChildren(...(mapping ?? []).map(tableOf));
}

function tableOf({ title, rows: [heads, ...rows] }) {
  const cell = (tag) => (text) => h(tag, {}, text);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, h("table", {}, h("caption", {}, title),
    h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...heads.map((_, at) => cell("td")(row[at] ?? "")))))));
}

// Shows one of the three views.
function showTab(name) {
  for (const button of $$("[role=tab]")) {
    const chosen = button.dataset.tab === name;
    button.setAttribute("aria-selected", chosen);
    button.tabIndex = chosen ? 0 : -1;
    $(`#${button.dataset.tab}-panel`).hidden = !chosen;
  }
  history.replaceState(null, "", `#${name}`);
  if (name === "drawing") drawing.fit();
  if (name === "text") editor.view.requestMeasure();
}

for (const button of $$("[role=tab]")) {
  button.addEventListener("click", () => showTab(button.dataset.tab));
  button.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = $$("[role=tab]");
    const next = all[(all.indexOf(button) + step + all.length) % all.length];
    showTab(next.dataset.tab);
    next.focus();
  });
}

function showFormat() {
  for (const button of $$("[data-format]")) button.setAttribute("aria-pressed", button.dataset.format === now.format);
}

for (const button of $$("[data-format]")) {
  button.addEventListener("click", () => {
    const { format } = button.dataset;
    if (format === now.format) return;
    const text = now[format];
    if (text == null) return say(now.cannot ?? "Correct the text first; then it can be translated.");
    const other = { text: now.text, format: now.format };
    Object.assign(now, { text, format });
    now[other.format] = other.text;
    editor.show(text, format);
    for (const view of Object.keys(seen)) if (seen[view] === other.text) seen[view] = text;
    showFormat();
    say("");
  });
}

async function submit(hold) {
  const form = $("#send");
  const value = (name) => form.elements[name]?.value.trim() || undefined;
  try {
    const number = Number(value("priority") ?? 0);
    const count = (name) => (value(name) ? Number(value(name)) : undefined);
    const minutes = (name) => (value(name) ? Math.round(60 * Number(value(name))) : undefined);
    const asked = { text: now.text, format: now.format, name: value("name"), project: value("project"), priority: number, batch: form.elements.batch.checked, hold, cores: count("cores"), idle_swap: minutes("idle_swap"), auto_swap: minutes("auto_swap") };
    if (start.id) {
      await request("PUT", `/api/experiments/${start.id}/text`, { text: now.text, format: now.format });
      location.assign(`/experiments/${start.id}`);
      return;
    }
    const experiment = await post("/api/experiments", asked);
    location.assign(`/experiments/${experiment.id}`);
  } catch (error) {
    showErrors(error.errors?.length ? error.errors : [{ message: error.message, cure: "" }]);
  }
}

$("#send").addEventListener("submit", (event) => {
  event.preventDefault();
  submit(false);
});
$("#hold").addEventListener("click", () => submit(true));
$("#file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  const text = await file.text();
  const format = languageOf(text, file.name.endsWith(".toml") ? "toml" : "ns");
  Object.assign(now, { text, format });
  editor.show(now.text, format);
  showFormat();
  showTab("text");
  await analyse("text");
});
$("#copy").addEventListener("click", async () => {
  await navigator.clipboard?.writeText($("#line").textContent).catch(() => {});
  say("Copied.");
});

showFormat();
showTab(["question", "drawing", "text"].find((name) => location.hash === `#${name}`) ?? "question");
// The first analysis fills the views, and would overwrite earlier input.
const views = [$("#question-view"), $("#drawing-view")];
for (const view of views) view.inert = true;
await analyse("start");
for (const view of views) view.inert = false;
