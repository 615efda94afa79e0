// A table of points. A click on a heading sorts it; a filter shows only the rows that contain all words of the filter.

import { h } from "./dom.js";
import { magnitude, formatNumber } from "./words.js";

const COLUMNS = ["of", "label", "mean_ms", "ci95_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms", "throughput_kbps", "offered", "failed", "repetitions"];
const HEADINGS = { of: "experiment", label: "transport", mean_ms: "mean ms", ci95_ms: "± 95 %", p50_ms: "median", p99_ms: "p99", p999_ms: "p99.9", max_ms: "max", throughput_kbps: "kbit/s", offered: "messages", failed: "failed", repetitions: "runs" };
const TEXT_COLUMNS = new Set(["of", "label"]);

export class Points {
  constructor(place) {
    this.rows = [];
    this.sortKey = null;
    this.isDescending = false;
    this.filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Show only points that contain" });
    this.filter.addEventListener("input", () => this.draw());
    this.scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All points" });
    place.append(this.filter, this.scroll);
  }

  show(rows, axes) {
    Object.assign(this, { rows, axes });
    this.draw();
  }

  draw() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const present = COLUMNS.filter((key) => this.rows.some((row) => row[key] != null));
    const keys = [...present.filter((key) => TEXT_COLUMNS.has(key)), ...this.axes, ...present.filter((key) => !TEXT_COLUMNS.has(key))];
    const text = (row, key) => (typeof row[key] === "number" ? formatNumber(row[key], 4) : (row[key] ?? "–"));
    let rows = this.rows.filter((row) => words.every((word) => keys.some((key) => String(row[key] ?? "").toLowerCase().includes(word))));
    if (this.sortKey) {
      const size = (row) => magnitude(row[this.sortKey]) ?? row[this.sortKey] ?? "";
      rows = [...rows].sort((one, other) => (size(one) < size(other) ? -1 : size(one) > size(other) ? 1 : 0) * (this.isDescending ? -1 : 1));
    }
    const head = (key) => {
      const sort = () => {
        this.isDescending = this.sortKey === key && !this.isDescending;
        this.sortKey = key;
        this.draw();
        this.scroll.querySelector(`[data-key="${key}"]`)?.focus();
      };
      const direction = this.sortKey === key ? (this.isDescending ? "descending" : "ascending") : "none";
      return h("th", { scope: "col", class: TEXT_COLUMNS.has(key) && "text", "aria-sort": direction }, h("button", { type: "button", "data-key": key, onclick: sort }, HEADINGS[key] ?? key));
    };
    this.scroll.replaceChildren(h("table", { class: "sortable" }, h("thead", {}, h("tr", {}, ...keys.map(head))),
      h("tbody", {}, ...rows.map((row) => h("tr", { class: row.complete === false ? "soft" : "" }, ...keys.map((key) => h("td", { class: TEXT_COLUMNS.has(key) && "text" }, text(row, key))))))));
  }
}
