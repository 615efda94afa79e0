// The page of one experiment: its state, progress and results so far, its log, an animation, a terminal on its nodes, its files.

import { $, $$, embeddedData, h, say, debounce } from "./dom.js";
import { request, get, post, watch } from "./api.js";
import { showAnswer, showStages } from "./answer.js";
import { Curves } from "./curves.js";
import { axes } from "./swept_keys.js";
import { PointChoice } from "./point_choice.js";
import { Points } from "./table.js";
import { Shell } from "./shell.js";
import { formatDuration, formatInteger, STATES } from "./words.js";

const experiment = embeddedData("experiment");
const { id } = experiment;
const path = `/api/experiments/${id}`;

// The actions that each state allows.
const ACTIONS = {
  new: ["start", "edit", "terminate"], queued: ["swap-out", "terminate"], starting: ["swap-out", "terminate"], active: ["swap-out", "terminate"],
  swapped_out: ["swap-in", "edit", "terminate"], failed: ["start", "edit"], terminated: [], done: ["edit"],
};
const OVER = ["terminated", "failed", "done"];

const curves = new Curves($("#curves"), { title: "Curves" });
const table = new Points($("#points"));
const rows = new Map();

function draw(now) {
  const chip = $("#state");
  chip.textContent = STATES[now.state];
  chip.className = `state s-${now.state}`;
  $("#why").textContent = now.why;
  for (const button of $$("[data-do]")) button.hidden = !ACTIONS[now.state].includes(button.dataset.do);
  const changed = now.state !== experiment.state;
  const hasNewText = now.version !== experiment.version;
  Object.assign(experiment, now);
  progress(now.progress);
  const over = OVER.includes(now.state);
  document.body.classList.toggle("over", over);
  $("#results-heading").textContent = over ? "Results" : "Results so far";
  say(`${STATES[now.state]}${now.why ? `: ${now.why}` : ""}`, "#spoken");
  if (changed) files();
  if (hasNewText) for (const choice of choices) choice.reload();
}

// Returns the axes and points of the last version of the text.
let planned = {};
function plan() {
  if (planned.version !== experiment.version) {
    const own = { version: experiment.version, answer: get(`${path}/plan`) };
    planned = own;
    // After an error the next call sends another request.
    own.answer.catch(() => planned === own && (planned = {}));
  }
  return planned.answer;
}

const choices = [];
function choice(place, changed) {
  choices.push(new PointChoice(place, plan, changed));
  return choices.at(-1);
}

function progress({ share, left, runs, runs_wanted, failed, messages, messages_wanted }) {
  $("#progress").value = share;
  const parts = [`${Math.floor(share * 100)} %`, `${formatInteger(runs)} of ${formatInteger(runs_wanted)} runs`, failed ? `${formatInteger(failed)} failed` : "", `${formatInteger(messages)} of ${formatInteger(messages_wanted)} messages`, left != null && !OVER.includes(experiment.state) ? `${formatDuration(left)} left` : ""];
  $("#left").textContent = runs_wanted ? parts.filter(Boolean).join(" · ") : "";
}

const show = debounce(() => {
  const list = [...rows.values()];
  $("#results").hidden = !list.length;
  $("#split-part").hidden = !showStages($("#split"), list, axes(list));
  curves.show(list);
  table.show(list, axes(list));
}, 100);

function point(row) {
  rows.set(row.point ?? `${row.label} ${JSON.stringify(axes([row]))}`, row);
  show();
}

function log(line) {
  const place = $("#log");
  const text = typeof line === "string" ? line : (line.line ?? line.text ?? "");
  place.append(`${text}\n`);
  if (place.textContent.length > 60_000) place.textContent = place.textContent.slice(-40_000);
  if (place.scrollHeight - place.scrollTop - place.clientHeight < 80) place.scrollTop = place.scrollHeight;
  $("#log-part").hidden = false;
}

const octets = (size) => (size < 1024 ? `${size} B` : size < 1 << 20 ? `${(size / 1024).toFixed(1)} KiB` : `${(size / (1 << 20)).toFixed(1)} MiB`);

async function files() {
  const list = await get(`${path}/files/`).catch(() => []);
  $("#files-part").hidden = !list.length;
  const has = (name) => list.some((file) => file.path === name);
  $("#report").hidden = !has("report.html");
  // Before the experiment has ended, the conclusions are those of earlier results, and perhaps of an earlier text.
  if (has("answer.json") && ["done", "failed", "terminated"].includes(experiment.state)) showAnswer($("#answer"), await get(`${path}/files/answer.json`));
  $("#files").replaceChildren(...list.map(({ path: file, size }) => h("li", {}, h("a", { href: `${path}/files/${file.split("/").map(encodeURIComponent).join("/")}`, download: "" }, file), " ", h("span", { class: "soft" }, octets(size)))));
}

async function points() {
  const list = await get(`${path}/points`).catch(() => []);
  for (const row of list) rows.set(row.point ?? rows.size, row);
  show();
}

for (const button of $$("[data-do]")) {
  const action = button.dataset.do;
  button.addEventListener("click", async () => {
    if (action === "edit") return location.assign(`/new?of=${id}&edit=1#text`);
    button.disabled = true;
    try {
      draw(await post(`${path}/${action}`));
    } catch (error) {
      say(error.message);
    }
    button.disabled = false;
  });
}

$("#share").addEventListener("click", async () => {
  try {
    const { link } = await post(`${path}/share`);
    const url = new URL(link, location).href;
    $("#shared").append(h("span", { class: "shared-link" }, "Anyone with this link can read the report and the files: ", h("a", { href: url }, url)));
    $("#unshare").hidden = false;
    await navigator.clipboard?.writeText(url).catch(() => {});
  } catch (error) {
    say(error.message);
  }
});

$("#unshare").addEventListener("click", async () => {
  try {
    await request("DELETE", `${path}/share`);
    $("#shared").replaceChildren("All shared links have ended.");
    $("#unshare").hidden = true;
  } catch (error) {
    say(error.message);
  }
});

$("#again").addEventListener("submit", async (event) => {
  event.preventDefault();
  const lines = $("#with").value.split("\n").map((line) => line.trim()).filter(Boolean);
  const wrong = lines.find((line) => !/^[^=\s]+\s*=\s*\S/.test(line));
  if (wrong) return say(`${wrong}: not a setting; write KEY = VALUE, as in network.delay = 40ms`, "#again-said");
  // A value may be written as in a file, with quotes.
  const set = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")).trim(), line.slice(line.indexOf("=") + 1).trim()]));
  try {
    const next = await post(`${path}/again`, { set });
    location.assign(`/experiments/${next.id}`);
  } catch (error) {
    $("#again-said").textContent = error.message;
  }
});

$("#delete")?.addEventListener("click", async () => {
  const dialog = $("#sure");
  dialog.showModal();
  dialog.onclose = async () => {
    if (dialog.returnValue !== "yes") return;
    try {
      await request("DELETE", path);
      location.assign("/");
    } catch (error) {
      say(error.message);
    }
  };
});

// The text is loaded when the user opens its part of the page.
$("#text-part")?.addEventListener("toggle", async () => {
  try {
    $("#own-text").textContent = (await get(`${path}/text`)).text;
  } catch (error) {
    $("#own-text").textContent = error.message;
  }
}, { once: true });

// The animation is loaded when the user opens its part of the page. A study has none.
function animate(part) {
  const [said, repetition] = [$("#movie-said"), $("#movie-repetition")];
  const limit = (point) => (repetition.max = point ? point.repetitions - 1 : "");
  const runChoice = choice($("#movie-point"), limit);
  let movie = null;
  const show = async () => {
    said.textContent = "Repeating the run to record its packets …";
    try {
      const [{ Movie }, { index }] = await Promise.all([import("./movie.js"), runChoice.chosen()]);
      movie ??= new Movie($("#movie"), id);
      await movie.load(index, Number(repetition.value || 0));
      said.textContent = movie.run.title;
    } catch (error) {
      said.textContent = error.message;
    }
  };
  $("#movie-load").addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  part.addEventListener("toggle", () => part.open && !movie && show());
}
if ($("#movie-part")) animate($("#movie-part"));

const shell = $("#shell-part") && new Shell(path, choice($("#shell-point")));
$("#shell-part")?.addEventListener("toggle", () => shell.start().catch((error) => say(error.message, "#shell-trouble")), { once: true });

draw(experiment);
points();
files();
get(`${path}/log`).then((text) => text && log(text.trimEnd())).catch(() => {});
// A stream begins with the current state, without earlier points, so these are fetched.
const state = (now) => {
  draw(now);
  points();
};
watch(`${path}/events`, { state, progress, point, log, shell: (entry) => $("#shell-part")?.open && shell.addEntry(entry) });
