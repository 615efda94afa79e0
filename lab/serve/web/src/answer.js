// The conclusions of the report, and the stages of the mean delay of a message.

import { h, s } from "./dom.js";
import { formatNumber } from "./words.js";

// The stages of a message's delay, in their order. They add up to the mean delay.
const STAGES = [
  ["slip_ms", "behind schedule", "grey"], ["service_ms", "at the server", "blue"], ["sender_ms", "waiting at the sender", "purple"], ["recovery_ms", "loss recovery", "vermilion"],
  ["network_ms", "network, including the round trip", "sky"], ["head_of_line_ms", "head-of-line wait", "orange"],
];
const MAX_POINTS = 24;
const WIDTH = 480;

// Returns a sentence as elements. Text between backticks is a command.
const elementsOf = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));

export function showAnswer(place, { complete, sentences, lines, question }) {
  const warning = complete ? null : h("p", { class: "soft" }, "Some runs are missing; these sentences describe the completed ones.");
  const all = lines.length ? h("details", { open: lines.length <= 8 }, h("summary", {}, "In detail"), h("ul", {}, ...lines.map((line) => h("li", {}, ...elementsOf(line))))) : null;
  place.replaceChildren(...[question && h("p", { class: "answer" }, question), ...sentences.map((own) => h("p", { class: "answer" }, ...elementsOf(own))), warning, all].filter(Boolean));
  place.hidden = !place.childNodes.length;
}

// Shows a table with the durations of the stages of each point, and a bar of them. Returns whether any point has stages.
export function showStages(place, rows, axes) {
  const measured = rows.filter((row) => STAGES.some(([key]) => row[key] > 0));
  const shown = measured.slice(0, MAX_POINTS);
  const total = (row) => STAGES.reduce((sum, [key]) => sum + (row[key] ?? 0), 0);
  const longest = Math.max(1e-9, ...shown.map(total));
  const stages = STAGES.filter(([key]) => shown.some((row) => row[key] > 0));
  const bar = (row) => {
    let x = 0;
    const parts = stages.map(([key, , colour]) => {
      const width = ((row[key] ?? 0) / longest) * WIDTH;
      x += width;
      return s("rect", { class: `stage-${colour}`, x: x - width, y: 0, width, height: 14 });
    });
    return s("svg", { viewBox: `0 0 ${WIDTH} 14`, preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" }, ...parts);
  };
  const name = (row) => [row.label, ...axes.map((key) => row[key])].filter((part) => part != null).join(" · ");
  const headings = ["", "", ...stages.map(([, label]) => label), "sum, ms"];
  place.replaceChildren(...(shown.length ? [
    h("ul", { class: "legend" }, ...stages.map(([, label, colour]) => h("li", {}, s("svg", { width: 14, height: 10, "aria-hidden": "true" }, s("rect", { class: `stage-${colour}`, width: 14, height: 10 })), " ", label))),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Stages of the mean delay" }, h("table", { class: "split" },
      h("thead", {}, h("tr", {}, ...headings.map((text, at) => h(at === 1 ? "td" : "th", at === 1 ? {} : { scope: "col" }, text || (at === 0 ? "point" : ""))))),
      h("tbody", {}, ...shown.map((row) => h("tr", {}, h("th", { scope: "row" }, name(row)), h("td", {}, bar(row)), ...stages.map(([key]) => h("td", {}, formatNumber(row[key]))), h("td", {}, formatNumber(total(row)))))))),
    measured.length > MAX_POINTS ? h("p", { class: "soft" }, `The first ${MAX_POINTS} of ${measured.length} points; the report has all.`) : "",
  ] : []));
  return shown.length > 0;
}
