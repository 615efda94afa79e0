// Curves over an axis, and distributions: uPlot for the eye, a table beside each for everybody.

import uPlot from "uplot";
import { h, settled } from "./dom.js";
import { magnitude, number } from "./words.js";

// Okabe and Ito, as in the reports.
const COLOURS = ["--vermilion", "--blue", "--green", "--orange", "--purple", "--sky", "--ink"];
const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3]];

export const METRICS = [
  ["mean_ms", "Mean response time, ms"], ["p50_ms", "Median, ms"], ["p99_ms", "99th percentile, ms"], ["p999_ms", "99.9th percentile, ms"],
  ["throughput_kbps", "Throughput, kbit/s"], ["head_of_line_ms", "Head-of-line wait, ms"], ["recovery_ms", "Loss recovery, ms"], ["connect_ms", "Connecting, ms"],
];

const QUANTILES = [["p50_ms", 0.5], ["p90_ms", 0.1], ["p99_ms", 0.01], ["p999_ms", 0.001]];
const look = (index) => ({ colour: COLOURS[index % COLOURS.length], dash: DASHES[Math.floor(index / COLOURS.length) % DASHES.length] });
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Which columns of the points are axes: dotted keys with more than one value.
export function axes(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => /^(network|workload|hosts|background|onward|program)\./.test(key) || ["messages", "seed", "world", "timeline"].includes(key));
  return keys.filter((key) => new Set(rows.map((row) => row[key])).size > 1);
}

// A number with half its 95 % interval, where it has one.
function told(row, metric) {
  const half = row?.[metric === "mean_ms" ? "ci95_ms" : metric.replace(/_(kbps|ms)$/, "_ci95_$1")];
  return `${number(row?.[metric])}${half == null ? "" : ` ± ${number(half, 2)}`}`;
}

export class Curves {
  constructor(place, { title = "Curves" } = {}) {
    this.rows = [];
    this.metric = h("select", { "aria-label": "Quantity" }, ...METRICS.map(([key, label]) => h("option", { value: key }, label)), h("option", { value: "ccdf" }, "Distribution: share of slower messages"));
    this.over = h("select", { "aria-label": "Over" });
    this.chart = h("div", { class: "chart", "aria-hidden": "true" });
    this.legend = h("ul", { class: "legend" });
    this.table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${title} as a table` });
    place.append(h("div", { class: "choose-curve" }, this.metric, (this.where = h("span", {}, " over ", this.over))), this.chart, this.legend, h("details", {}, h("summary", {}, "The numbers"), this.table));
    for (const select of [this.metric, this.over]) select.addEventListener("change", () => this.draw());
    new ResizeObserver(settled(() => this.draw(), 50)).observe(this.chart);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.soon = settled(() => this.draw(), 60);
  }

  show(rows) {
    this.rows = rows;
    this.soon();
  }

  draw() {
    if (!this.chart.isConnected || !this.chart.clientWidth) return;
    const keys = axes(this.rows);
    const chosen = this.over.value;
    if (keys.join() !== this.keys) {
      this.keys = keys.join();
      this.over.replaceChildren(...keys.map((key) => h("option", { value: key }, key)));
      if (keys.includes(chosen)) this.over.value = chosen;
    }
    const isDistribution = this.metric.value === "ccdf";
    this.where.hidden = isDistribution || !keys.length;
    if (isDistribution) this.distributions(keys);
    else this.over.value ? this.overAxis(this.over.value, keys) : this.beside();
  }

  // One curve for each transport and each combination of the other axes.
  series(keys) {
    const names = new Map();
    for (const row of this.rows) {
      const name = [row.of, row.label, ...keys.map((key) => row[key])].filter((part) => part != null).join(" · ");
      if (!names.has(name)) names.set(name, []);
      names.get(name).push(row);
    }
    return [...names];
  }

  overAxis(key, keys) {
    const series = this.series(keys.filter((other) => other !== key));
    const values = [...new Set(this.rows.map((row) => row[key]))];
    const sizes = values.map(magnitude);
    const numeric = sizes.every((size) => size !== null);
    const order = values.map((value, at) => [numeric ? sizes[at] : at, value]).sort((one, other) => one[0] - other[0]);
    const xs = order.map(([x]) => x);
    const metric = this.metric.value;
    const columns = series.map(([, rows]) => order.map(([, value]) => rows.find((row) => row[key] === value)?.[metric] ?? null));
    const label = new Map(order);
    this.plot(xs, columns, series.map(([name]) => name), {
      x: { values: (_, splits) => splits.map((at) => label.get(at) ?? ""), splits: () => xs },
      ylabel: this.metric.selectedOptions[0].textContent,
      xlabel: key,
    });
    const cells = (rows) => order.map(([, value]) => told(rows.find((row) => row[key] === value), metric));
    this.tabulate([key, ...order.map(([, value]) => value)], series.map(([name, rows]) => [name, ...cells(rows)]));
  }

  // No axis: the transports beside each other, each a point.
  beside() {
    const series = this.series([]);
    const metric = this.metric.value;
    const ylabel = this.metric.selectedOptions[0].textContent;
    const columns = series.map(([, [row]], at) => series.map((_, other) => (other === at ? (row[metric] ?? null) : null)));
    const names = series.map(([name]) => name);
    const places = names.map((_, at) => at);
    this.plot(places, columns, names, { x: { values: () => (names.length > 6 ? [] : names), splits: () => places }, ylabel, xlabel: "", range: [-0.5, names.length - 0.5] });
    this.tabulate(["", ylabel], series.map(([name, [row]]) => [name, told(row, metric)]));
  }

  distributions(keys) {
    const series = this.series(keys);
    const xs = [...new Set(series.flatMap(([, [row]]) => QUANTILES.map(([key]) => row[key]).filter((value) => value != null)))].sort((a, b) => a - b);
    const columns = series.map(([, [row]]) => xs.map((x) => QUANTILES.findLast(([key]) => row[key] === x)?.[1] ?? null));
    this.plot(xs, columns, series.map(([name]) => name), { x: {}, ylabel: "Share of slower messages", xlabel: "ms", logarithmic: true });
    this.tabulate(["", ...QUANTILES.map(([, share]) => `slower than: ${share * 100} %`)], series.map(([name, [row]]) => [name, ...QUANTILES.map(([key]) => number(row[key]))]));
  }

  plot(xs, columns, names, { x, ylabel, xlabel, logarithmic = false, range }) {
    this.uplot?.destroy();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--rule"), width: 1 }, font: "11px system-ui", labelFont: "11px system-ui", labelSize: 18 };
    const shown = names.map((name, index) => ({ name, ...look(index) }));
    this.uplot = new uPlot({
      width: this.chart.clientWidth,
      height: Math.min(360, Math.max(220, this.chart.clientWidth * 0.5)),
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, ...(range && { range }) }, y: logarithmic ? { distr: 3 } : { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.06] } },
      axes: [{ ...axis, ...x, label: xlabel, size: 34 }, { ...axis, label: ylabel, size: 52 }],
      series: [{}, ...shown.map(({ name, colour: own, dash }) => ({ label: name, stroke: colour(own), width: 1.6, dash, spanGaps: true, points: { show: true, size: 6, fill: colour(own) } }))],
    }, [xs, ...columns], this.chart);
    this.legend.replaceChildren(...shown.map(({ name, colour: own }) => h("li", { class: own.slice(2) }, name)));
  }

  tabulate(heads, rows) {
    this.table.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...rows.map(([first, ...cells]) => h("tr", {}, h("th", { scope: "row" }, first), ...cells.map((text) => h("td", {}, text)))))));
  }
}
