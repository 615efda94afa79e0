// A drawing as an immutable value: every change returns a new graph, so that undo can restore the previous one.

export const GRID = 20;
const EDGE_LENGTH = 240;

export const empty = () => ({ nodes: [], links: [], lans: [], traffic: [], swept: [] });
export const snap = (at) => Math.round(at / GRID) * GRID;

const LINE = { rate: "100Mbit", delay: "10ms", loss: "0%", queue: "50p", discipline: "droptail" };
const LAN = { ...LINE, delay: "0ms" };

// Nodes and LANs are drawn as boxes. Every element has an id, such as "node 0", "lan 1", "link 0" or "traffic 0".
export const id = (kind, index) => `${kind} ${index}`;
export const parseId = (what) => {
  const [kind, index] = what.split(" ");
  return [kind, Number(index)];
};
const LISTS = { node: "nodes", lan: "lans", link: "links", traffic: "traffic" };
export const item = (graph, what) => {
  const [kind, index] = parseId(what);
  return graph[LISTS[kind]]?.[index];
};

export function items(graph) {
  return Object.entries(LISTS).flatMap(([kind, list]) => graph[list].map((_, index) => id(kind, index)));
}

export function freshName(graph, stem, first = 0) {
  const taken = new Set([...graph.nodes, ...graph.links, ...graph.lans].map((own) => own.name));
  let number = first;
  while (taken.has(`${stem}${number}`)) number += 1;
  return `${stem}${number}`;
}

const NAMES = ["client", "server"];

export function addNode(graph, x, y) {
  const name = NAMES.find((own) => !graph.nodes.some((node) => node.name === own)) ?? freshName(graph, "node", 1);
  return { ...graph, nodes: [...graph.nodes, { name, x: snap(x), y: snap(y) }] };
}

export function addLan(graph, x, y) {
  const lan = { name: freshName(graph, "lan"), nodes: [], line: { ...LAN }, x: snap(x), y: snap(y) };
  return { ...graph, lans: [...graph.lans, lan] };
}

// Adds a link between two nodes, or makes a node a member of a LAN. Returns null for anything else.
export function connect(graph, one, other) {
  const kinds = [parseId(one)[0], parseId(other)[0]];
  if (one === other) return null;
  if (kinds.join() === "lan,node") return connect(graph, other, one);
  if (kinds.join() === "node,lan") {
    const [node, index] = [item(graph, one).name, parseId(other)[1]];
    if (graph.lans[index].nodes.includes(node)) return null;
    const lans = graph.lans.map((lan, at) => (at === index ? { ...lan, nodes: [...lan.nodes, node] } : lan));
    return { ...graph, lans };
  }
  if (kinds.join() !== "node,node") return null;
  const link = { name: freshName(graph, "link"), from: item(graph, one).name, to: item(graph, other).name, line: { ...LINE }, back: null };
  return { ...graph, links: [...graph.links, link] };
}

// Adds traffic. The first flow is measured; the others are background.
export function addTraffic(graph, one, other) {
  if (one === other || parseId(one)[0] !== "node" || parseId(other)[0] !== "node") return null;
  const ends = { from: item(graph, one).name, to: item(graph, other).name };
  const own = graph.traffic.length
    ? { ...ends, kind: "bulk", transport: "tcp" }
    : { ...ends, kind: "simco", transport: "tcp sctp:streams=8" };
  return { ...graph, traffic: [...graph.traffic, own] };
}

export function removeMember(graph, lan, node) {
  const lans = graph.lans.map((own, at) => (at === lan ? { ...own, nodes: own.nodes.filter((name) => name !== node) } : own));
  return { ...graph, lans };
}

export function remove(graph, what) {
  const [kind, index] = parseId(what);
  const list = LISTS[kind];
  const gone = graph[list][index];
  const without = { ...graph, [list]: graph[list].filter((_, at) => at !== index) };
  if (kind !== "node") return without;
  const ends = (own) => own.from !== gone.name && own.to !== gone.name;
  const lans = without.lans.map((lan) => ({ ...lan, nodes: lan.nodes.filter((name) => name !== gone.name) }));
  return { ...without, links: without.links.filter(ends), traffic: without.traffic.filter(ends), lans };
}

// Changes fields of an element. A new name of a node also replaces the old one in links, LANs and traffic.
export function change(graph, what, fields) {
  const [kind, index] = parseId(what);
  const list = LISTS[kind];
  const before = graph[list][index];
  const changed = { ...graph, [list]: graph[list].map((own, at) => (at === index ? { ...own, ...fields } : own)) };
  if (kind !== "node" || !("name" in fields) || fields.name === before.name) return changed;
  const now = (name) => (name === before.name ? fields.name : name);
  const ends = (own) => ({ ...own, from: now(own.from), to: now(own.to) });
  const lans = changed.lans.map((lan) => ({ ...lan, nodes: lan.nodes.map(now) }));
  return { ...changed, links: changed.links.map(ends), traffic: changed.traffic.map(ends), lans };
}

export const move = (graph, what, x, y) => change(graph, what, { x: snap(x), y: snap(y) });

// Returns the position of every box by its id. Boxes without a position get one.
export function positions(graph) {
  const boxes = [...graph.nodes.map((_, at) => id("node", at)), ...graph.lans.map((_, at) => id("lan", at))];
  const fixed = new Map(boxes.filter((box) => item(graph, box).x != null).map((box) => [box, [item(graph, box).x, item(graph, box).y]]));
  if (fixed.size === boxes.length) return fixed;
  return arrange(graph, boxes, fixed);
}

export function edges(graph) {
  const node = new Map(graph.nodes.map((own, at) => [own.name, id("node", at)]));
  const links = graph.links.map((link) => [node.get(link.from), node.get(link.to)]);
  const members = graph.lans.flatMap((lan, at) => lan.nodes.map((name) => [node.get(name), id("lan", at)]));
  return [...links, ...members].filter(([one, other]) => one && other);
}

// Places boxes by forces: boxes repel each other, and edges attract their ends (Fruchterman and Reingold 1991). The layout is deterministic.
function arrange(graph, boxes, fixed) {
  const middle = [0, 1].map((axis) => [...fixed.values()].reduce((sum, at) => sum + at[axis], 0) / Math.max(1, fixed.size));
  const radius = EDGE_LENGTH * Math.max(0.5, boxes.length / (2 * Math.PI));
  const at = new Map(boxes.map((box, index) => {
    const angle = (2 * Math.PI * index) / boxes.length;
    return [box, fixed.get(box)?.slice() ?? [middle[0] - radius * Math.cos(angle), middle[1] - radius * Math.sin(angle)]];
  }));
  const edgeList = edges(graph);
  const rounds = boxes.length < 100 ? 300 : 40;
  for (let round = 0; round < rounds; round += 1) {
    const force = new Map(boxes.map((box) => [box, [0, 0]]));
    const between = (one, other, strength) => {
      const [a, b] = [at.get(one), at.get(other)];
      const [x, y] = [b[0] - a[0], b[1] - a[1]];
      const distance = Math.max(1, Math.hypot(x, y));
      const push = strength(distance) / distance;
      const [f, g] = [force.get(one), force.get(other)];
      f[0] += x * push;
      f[1] += y * push;
      g[0] -= x * push;
      g[1] -= y * push;
    };
    boxes.forEach((one, index) => boxes.slice(index + 1).forEach((other) => between(one, other, (distance) => (-EDGE_LENGTH * EDGE_LENGTH) / distance)));
    edgeList.forEach(([one, other]) => between(one, other, (distance) => (distance * distance) / EDGE_LENGTH));
    const longest = EDGE_LENGTH * 0.5 * (1 - round / rounds);
    for (const box of boxes) {
      if (fixed.has(box)) continue;
      const [x, y] = force.get(box);
      const strength = Math.max(1e-9, Math.hypot(x, y));
      const step = Math.min(strength, longest) / strength;
      at.get(box)[0] += x * step;
      at.get(box)[1] += y * step;
    }
  }
  const corner = fixed.size ? [0, 0] : [0, 1].map((axis) => Math.min(...[...at.values()].map((own) => own[axis])) - 80);
  return new Map([...at].map(([box, own]) => [box, own.map((value, axis) => snap(value - corner[axis]))]));
}

// Returns the graph with a position for every box: computes all of them (`anew`), or only the missing ones.
export function withPositions(graph, anew = false) {
  const unplaced = anew
    ? { ...graph, nodes: graph.nodes.map((own) => ({ ...own, x: null, y: null })), lans: graph.lans.map((own) => ({ ...own, x: null, y: null })) }
    : graph;
  let complete = unplaced;
  for (const [box, [x, y]] of positions(unplaced)) complete = change(complete, box, { x, y });
  return complete;
}

// The history of changes, for undo and redo.
export class History {
  constructor(now) {
    this.past = [];
    this.now = now;
    this.future = [];
  }
  do(next) {
    this.past.push(this.now);
    this.now = next;
    this.future = [];
  }
  undo() {
    if (!this.past.length) return false;
    this.future.push(this.now);
    this.now = this.past.pop();
    return true;
  }
  redo() {
    if (!this.future.length) return false;
    this.past.push(this.now);
    this.now = this.future.pop();
    return true;
  }
}
