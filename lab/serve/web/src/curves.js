// Charts of a metric over an axis, and of distributions, each with a table of its values.

import uPlot from "uplot";
import { h, s, debounce } from "./dom.js";
import { axes, isAt, valuesOf } from "./swept_keys.js";
import { magnitude, formatNumber } from "./words.js";

// Colours of Okabe and Ito, as in reports. Curves differ in their dashes, too, for readers who cannot distinguish the colours.
const COLOURS = ["--vermilion", "--blue", "--green", "--orange", "--purple", "--sky", "--ink"];
const DASHES = [[], [7, 3], [2, 3], [10, 3, 2, 3]];

// Maximum number of curves that a reader can distinguish in one chart.
const MAX_CURVES = 8;

export const METRICS = [
  ["mean_ms", "Mean response time, ms"], ["p50_ms", "Median, ms"], ["p99_ms", "99th percentile, ms"], ["p999_ms", "99.9th percentile, ms"],
  ["throughput_kbps", "Throughput, kbit/s"], ["head_of_line_ms", "Head-of-line wait, ms"], ["recovery_ms", "Loss recovery, ms"], ["connect_ms", "Time to connect, ms"],
  ["first_octets_ms", "Time to the first octets, ms"], ["objects_ms", "Mean time of an object or request, ms"], ["playable_percent", "Playable frames, %"], ["messages_per_s", "Messages per second"], ["packets_lost_each", "Packets lost per message"],
];

const QUANTILES = [["p50_ms", 0.5], ["p90_ms", 0.1], ["p99_ms", 0.01], ["p999_ms", 0.001]];
const styleOf = (index) => ({ colour: COLOURS[index % COLOURS.length], dash: DASHES[index % DASHES.length] });
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Returns half the width of the 95 % confidence interval of a metric; null if it has none.
function intervalHalfWidth(row, metric) {
  const unit = /_(kbps|ms|percent|per_s)$/;
  return row?.[metric === "mean_ms" ? "ci95_ms" : unit.test(metric) ? metric.replace(unit, "_ci95_$1") : `${metric}_ci95`] ?? null;
}

// Formats the value of a metric, with half the width of its 95 % confidence interval if it has one.
function formatWithInterval(row, metric) {
  const ci = intervalHalfWidth(row, metric);
  return `${formatNumber(row?.[metric])}${ci == null ? "" : ` ± ${formatNumber(ci, 2)}`}`;
}

export class Curves {
  constructor(place, { title = "Curves" } = {}) {
    this.rows = [];
    this.metricSelect = h("select", { "aria-label": "Quantity" }, ...METRICS.map(([key, label]) => h("option", { value: key }, label)), h("option", { value: "ccdf" }, "Distribution: share of slower messages"));
    this.axisSelect = h("select", { "aria-label": "Horizontal axis" });
    this.chart = h("div", { class: "chart", "aria-hidden": "true" });
    this.legend = h("ul", { class: "legend" });
    this.note = h("p", { class: "soft note" });
    this.partSelect = h("select", { "aria-label": "Curves" });
    this.firstCurve = 0;
    this.table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${title} as a table` });
    place.append(h("div", { class: "choose-curve" }, this.metricSelect, (this.axisLabel = h("span", {}, " over ", this.axisSelect)), this.partSelect), this.chart, this.legend, this.note, h("details", {}, h("summary", {}, "Table"), this.table));
    for (const select of [this.metricSelect, this.axisSelect]) select.addEventListener("change", () => ((this.firstCurve = 0), this.draw()));
    this.partSelect.addEventListener("change", () => ((this.firstCurve = Number(this.partSelect.value)), this.draw()));
    new ResizeObserver(debounce(() => this.draw(), 50)).observe(this.chart);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.drawSoon = debounce(() => this.draw(), 60);
  }

  show(rows) {
    this.rows = rows;
    this.drawSoon();
  }

  draw() {
    if (!this.chart.isConnected || !this.chart.clientWidth) return;
    const keys = axes(this.rows);
    const chosen = this.axisSelect.value;
    if (keys.join() !== this.keys) {
      this.keys = keys.join();
      this.axisSelect.replaceChildren(...keys.map((key) => h("option", { value: key }, key)));
      if (keys.includes(chosen)) this.axisSelect.value = chosen;
    }
    if (!this.rows.length) return;
    for (const option of this.metricSelect.options) option.hidden = option.disabled = option.value !== "ccdf" && !this.rows.some((row) => row[option.value] != null);
    if (this.metricSelect.selectedOptions[0]?.disabled) this.metricSelect.value = [...this.metricSelect.options].find((option) => !option.disabled).value;
    const isDistribution = this.metricSelect.value === "ccdf";
    this.axisLabel.hidden = isDistribution || !keys.length;
    if (isDistribution) this.drawDistributions(keys);
    else this.axisSelect.value ? this.drawOverAxis(this.axisSelect.value, keys) : this.drawPoints();
  }

  // Returns one curve for each transport and each combination of the other axes. If each experiment has its own value of `over`, a curve connects all experiments.
  series(keys, over) {
    const names = new Map();
    const values = new Map();
    for (const row of this.rows) values.set(row.of, (values.get(row.of) ?? new Set()).add(row[over]));
    const isOf = over === undefined || values.size === 1 || [...values.values()].some((own) => own.size > 1) || new Set([...values.values()].map((own) => [...own][0])).size < values.size;
    for (const row of this.rows) {
      const name = [isOf ? row.of : null, row.label, ...keys.map((key) => row[key])].filter((part) => part != null).join(" · ");
      if (!names.has(name)) names.set(name, []);
      names.get(name).push(row);
    }
    return [...names];
  }

  drawOverAxis(key, keys) {
    const series = this.curvesOfPart(this.series(keys.filter((other) => other !== key), key));
    const values = valuesOf(this.rows, key);
    const sizes = values.map(magnitude);
    const numeric = sizes.every((size) => size !== null);
    const order = values.map((value, at) => [numeric ? sizes[at] : at, value]).sort((one, other) => one[0] - other[0]);
    const xs = order.map(([x]) => x);
    const metric = this.metricSelect.value;
    const at = (rows) => order.map(([, value]) => rows.find((row) => isAt(row, key, value)));
    const columns = series.map(([, rows]) => at(rows).map((row) => row?.[metric] ?? null));
    const label = new Map(order);
    this.plot(xs, columns, series.map(([name]) => name), {
      x: { values: (_, splits) => splits.map((at) => label.get(at) ?? ""), splits: () => xs },
      ylabel: this.metricSelect.selectedOptions[0].textContent,
      xlabel: key,
      intervals: series.map(([, rows]) => at(rows).map((row) => intervalHalfWidth(row, metric))),
    });
    const cells = (rows) => order.map(([, value]) => formatWithInterval(rows.find((row) => isAt(row, key, value)), metric));
    this.tabulate([key, ...order.map(([, value]) => value)], series.map(([name, rows]) => [name, ...cells(rows)]));
  }

  // Without an axis, each transport is one point of the chart.
  drawPoints() {
    const series = this.curvesOfPart(this.series([]));
    const metric = this.metricSelect.value;
    const ylabel = this.metricSelect.selectedOptions[0].textContent;
    const columns = series.map(([, [row]], at) => series.map((_, other) => (other === at ? (row[metric] ?? null) : null)));
    const names = series.map(([name]) => name);
    const places = names.map((_, at) => at);
    this.plot(places, columns, names, { x: { values: () => (names.length > 6 ? [] : names), splits: () => places }, ylabel, xlabel: "", range: [-0.5, names.length - 0.5], intervals: series.map(([, [row]], at) => series.map((_, other) => (other === at ? intervalHalfWidth(row, metric) : null))) });
    this.tabulate(["", ylabel], series.map(([name, [row]]) => [name, formatWithInterval(row, metric)]));
  }

  drawDistributions(keys) {
    const series = this.curvesOfPart(this.series(keys));
    // A logarithmic axis has no zero.
    const xs = [...new Set(series.flatMap(([, [row]]) => QUANTILES.map(([key]) => row[key]).filter((value) => value > 0)))].sort((a, b) => a - b);
    const columns = series.map(([, [row]]) => xs.map((x) => QUANTILES.findLast(([key]) => row[key] === x)?.[1] ?? null));
    this.plot(xs, columns, series.map(([name]) => name), { x: { filter: (_, splits) => splits, values: (_, splits) => splits.map((at) => formatNumber(at)) }, ylabel: "Share of slower messages", xlabel: "ms", logarithmic: true });
    this.tabulate(["", ...QUANTILES.map(([, share]) => `exceeded by ${share * 100} %`)], series.map(([name, [row]]) => [name, ...QUANTILES.map(([key]) => formatNumber(row[key]))]));
  }

  // Returns the curves of the selected part: at most MAX_CURVES; a select element offers the other parts.
  curvesOfPart(series) {
    if (this.firstCurve >= series.length) this.firstCurve = 0;
    this.partSelect.hidden = series.length <= MAX_CURVES;
    const starts = Array.from({ length: Math.ceil(series.length / MAX_CURVES) }, (_, part) => part * MAX_CURVES);
    this.partSelect.replaceChildren(...starts.map((from) => h("option", { value: from, selected: from === this.firstCurve }, `curves ${from + 1} to ${Math.min(series.length, from + MAX_CURVES)} of ${series.length}`)));
    return series.slice(this.firstCurve, this.firstCurve + MAX_CURVES);
  }

  // Draws 95 % confidence intervals as error bars.
  drawIntervals(plot, intervals) {
    const { ctx } = plot;
    const end = 3 * devicePixelRatio;
    ctx.save();
    ctx.lineWidth = 1.2 * devicePixelRatio;
    intervals.forEach((halves, at) => {
      ctx.strokeStyle = colour(styleOf(at).colour);
      ctx.beginPath();
      halves.forEach((ci, index) => {
        const middle = plot.data[at + 1][index];
        if (ci == null || middle == null) return;
        const x = plot.valToPos(plot.data[0][index], "x", true);
        const [low, high] = [middle - ci, middle + ci].map((value) => plot.valToPos(value, "y", true));
        ctx.moveTo(x, low);
        ctx.lineTo(x, high);
        for (const y of [low, high]) {
          ctx.moveTo(x - end, y);
          ctx.lineTo(x + end, y);
        }
      });
      ctx.stroke();
    });
    ctx.restore();
  }

  plot(xs, columns, names, { x, ylabel, xlabel, logarithmic = false, range, intervals = [] }) {
    const halves = intervals.flat().filter((ci) => ci != null);
    const runs = [...new Set(this.rows.map((row) => row.repetitions))].sort((a, b) => a - b);
    const over = runs.length > 1 ? `${runs[0]} to ${runs.at(-1)} runs` : `${runs[0]} run${runs[0] === 1 ? "" : "s"}`;
    this.note.textContent = logarithmic ? "Quantiles of the messages of all runs; both axes are logarithmic." : halves.length ? `Bars: 95 % confidence interval over ${over}.` : runs.at(-1) === 1 ? "No confidence intervals: each point has one run." : "No confidence intervals: this quantity is computed over the messages of all runs.";
    const top = Math.max(0, ...columns.flatMap((own, at) => own.map((value, index) => (value ?? 0) + (intervals[at]?.[index] ?? 0))));
    this.uplot?.destroy();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--rule"), width: 1 }, font: "11px system-ui", labelFont: "11px system-ui", labelSize: 18 };
    const shown = names.map((name, index) => ({ name, ...styleOf(index) }));
    this.uplot = new uPlot({
      width: this.chart.clientWidth,
      height: Math.min(360, Math.max(220, this.chart.clientWidth * 0.5)),
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, ...(range && { range }), ...(logarithmic && { distr: 3 }) }, y: logarithmic ? { distr: 3 } : { range: (_, low) => [Math.min(0, low ?? 0), (top || 1) * 1.06] } },
      axes: [{ ...axis, ...x, label: xlabel, size: 34 }, { ...axis, label: ylabel, size: 56 }],
      hooks: { draw: [(plot) => this.drawIntervals(plot, intervals)] },
      series: [{}, ...shown.map(({ name, colour: own, dash }) => ({ label: name, stroke: colour(own), width: 1.6, dash, spanGaps: true, points: { show: true, size: 6, fill: colour(own) } }))],
    }, [xs, ...columns], this.chart);
    const swatch = (own, dash) => s("svg", { width: 28, height: 8, "aria-hidden": "true" }, s("line", { x1: 0, x2: 28, y1: 4, y2: 4, class: own.slice(2), "stroke-dasharray": dash.join(" ") }));
    this.legend.replaceChildren(...shown.map(({ name, colour: own, dash }) => h("li", {}, swatch(own, dash), " ", name)));
  }

  tabulate(heads, rows) {
    this.table.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...rows.map(([first, ...cells]) => h("tr", {}, h("th", { scope: "row" }, first), ...cells.map((text) => h("td", {}, text)))))));
  }
}
