// Draws a graph, for the editor and for the animation.

import { s } from "./dom.js";
import * as g from "./graph.js";

const halfWidth = (name) => Math.max(40, 12 + 4.2 * name.length);

// Returns a view that is centred on these positions and contains all of them.
export function frame(at, minWidth, minHeight) {
  const [[left, right], [top, bottom]] = [0, 1].map((axis) => at.map((own) => own[axis])).map((own) => [Math.min(...own), Math.max(...own)]);
  const [w, h] = [Math.max(minWidth, right - left + 220), Math.max(minHeight, bottom - top + 160)];
  return { x: (left + right - w) / 2, y: (top + bottom - h) / 2, w, h };
}

export const arrowhead = () =>
  s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, s("path", { d: "M0 0 8 4 0 8z" })));

// Returns how far each link or flow bends aside, so that those between the same boxes do not overlap.
function bendsOf(ways) {
  const count = new Map();
  return ways.map(([one, other]) => {
    const key = [one, other].sort().join();
    const before = count.get(key) ?? 0;
    count.set(key, before + 1);
    const side = one < other ? 1 : -1;
    return side * 26 * Math.ceil(before / 2) * (before % 2 ? 1 : -1);
  });
}

function curve([x1, y1], end, aside, half) {
  const far = Math.max(1, Math.hypot(end[0] - x1, end[1] - y1));
  const [nx, ny] = [(y1 - end[1]) / far, (end[0] - x1) / far];
  const middle = [(x1 + end[0]) / 2 + 2 * aside * nx, (y1 + end[1]) / 2 + 2 * aside * ny];
  const [x2, y2] = half ? edge(end, half, middle) : end;
  return { d: `M${x1} ${y1}Q${middle[0]} ${middle[1]} ${x2} ${y2}`, at: [(x1 + end[0]) / 2 + aside * nx, (y1 + end[1]) / 2 + aside * ny] };
}

// Returns the point where a line to the middle of a box meets the edge of the box.
function edge([x, y], [wide, high], from) {
  const [dx, dy] = [from[0] - x, from[1] - y];
  const share = Math.min(wide / Math.max(1e-6, Math.abs(dx)), high / Math.max(1e-6, Math.abs(dy)), 1);
  return [x + dx * share, y + dy * share];
}

const describe = (line) => {
  const loss = line.loss && line.loss !== "0%" ? ` · loss ${line.loss.length > 8 ? "in bursts" : line.loss}` : "";
  return `${line.rate} · ${line.delay}${loss}`;
};

// Returns the description for screen readers, which begins with the visible text.
export const describeItem = (graph, what) => {
  const own = g.item(graph, what);
  switch (g.parseId(what)[0]) {
    case "node":
      return `node ${own.name}`;
    case "lan":
      return `LAN ${own.name} ${describe(own.line)}: ${own.nodes.join(", ") || "no members"}`;
    case "link":
      return `link ${labelLines(own).join(" ")}, from ${own.from} to ${own.to}`;
    default:
      return `traffic ${own.kind} ${own.transport}, from ${own.from} to ${own.to}`;
  }
};

const labelLines = (link) => [link.name, describe(link.line), ...(link.back ? [`← ${describe(link.back)}`] : [])];

// Returns the SVG elements of a graph, for the editor and for the animation.
export function picture(graph, { chosen = null, from = null, handles = false } = {}) {
  const at = g.positions(graph);
  const box = new Map(graph.nodes.map((node, index) => [node.name, g.id("node", index)]));
  const links = graph.links.map((link) => [box.get(link.from), box.get(link.to)]);
  const traffic = graph.traffic.map((own) => [box.get(own.from), box.get(own.to)]);
  const aside = bendsOf([...links, ...traffic]);
  const element = (what, extra, ...children) => {
    const classes = [extra, what === chosen && "chosen", what === from && "from"].filter(Boolean).join(" ");
    const focus = handles ? { tabindex: 0, role: "button", "aria-label": describeItem(graph, what), "aria-pressed": what === chosen } : {};
    return s("g", { class: classes, "data-id": what, ...focus }, ...children);
  };
  const centred = { "text-anchor": "middle" };
  // Places a label above a line, or below a line that bends down.
  const label = (x, y, down, lines) => s("text", { x, y: down ? y + 17 : y - 6 - 13 * (lines.length - 1), ...centred },
    ...lines.flatMap((line, index) => [" ", s("tspan", { x, dy: index ? 13 : 0, class: index ? "note" : "" }, line)]));
  const parts = [];
  graph.lans.forEach((lan, index) => {
    const [x, y] = at.get(g.id("lan", index));
    for (const name of lan.nodes) {
      const other = at.get(box.get(name));
      if (other) parts.push(s("line", { class: "member", x1: x, y1: y, x2: other[0], y2: other[1] }));
    }
  });
  const drawLine = (ends, what, extra, aside, lines, half = null) => {
    if (!ends[0] || !ends[1]) return;
    const [one, other] = ends.map((end) => at.get(end));
    const { d, at: [x, y] } = curve(one, other, aside, half);
    const down = y > (one[1] + other[1]) / 2 + 8;
    parts.push(element(what, extra, s("path", { class: "wide", d }), s("path", { class: "way", d }), label(x, y, down, lines)));
  };
  graph.links.forEach((link, index) => drawLine(links[index], g.id("link", index), "link", aside[index], labelLines(link)));
  graph.traffic.forEach((own, index) => {
    const bend = aside[links.length + index] + (box.get(own.from) < box.get(own.to) ? 34 : -34);
    drawLine(traffic[index], g.id("traffic", index), index ? "traffic beside" : "traffic", bend, [own.kind, own.transport], [halfWidth(own.to) + 3, 21]);
  });
  graph.lans.forEach((lan, index) => {
    const [x, y] = at.get(g.id("lan", index));
    const half = Math.max(52, halfWidth(describe(lan.line)));
    parts.push(element(g.id("lan", index), "lan", s("rect", { x: x - half, y: y - 19, width: 2 * half, height: 38, rx: 19 }),
      s("text", { x, y: y - 3, ...centred }, lan.name), " ", s("text", { x, y: y + 11, ...centred, class: "note" }, describe(lan.line))));
  });
  graph.nodes.forEach((node, index) => {
    const [x, y] = at.get(g.id("node", index));
    const half = halfWidth(node.name);
    parts.push(element(g.id("node", index), "node", s("rect", { x: x - half, y: y - 18, width: 2 * half, height: 36, rx: 5 }),
      s("text", { x, y: y + 5, ...centred }, node.name)));
  });
  return parts;
}
