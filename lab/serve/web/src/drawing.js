// The drawing: nodes, links, LANs and traffic, edited with mouse or keyboard.
// It shows a graph (graph.js). It calls `changed(graph)` after every change by the user; `show(graph)` shows another graph.

import { h, s } from "./dom.js";
import * as g from "./graph.js";
import { arrowhead, frame, picture } from "./picture.js";
import { properties } from "./properties.js";

// Nodes and LANs are boxes: they can be moved, and links and traffic connect them.
const isBox = (what) => ["node", "lan"].includes(g.parseId(what)[0]);
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Drawing {
  constructor(place, changed) {
    this.onChange = changed;
    this.origin = {};
    this.history = new g.History(g.empty());
    this.chosen = null;
    this.joining = null; // { from, kind: "link" | "traffic" }
    this.view = { x: 0, y: 0, w: 720, h: 420 };
    this.canvas = s("svg", { class: "drawing", role: "group", "aria-label": "Network; Tab selects the next element, arrow keys move it", "aria-describedby": "drawing-help" });
    this.panel = h("div", { class: "properties" });
    this.status = h("p", { class: "soft status", role: "status" });
    place.append(this.tools(), h("div", { class: "board" }, this.canvas, this.panel), this.status, help());
    this.canvas.addEventListener("pointerdown", (event) => this.pointerDown(event));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("dblclick", (event) => this.doubleClick(event));
    place.addEventListener("keydown", (event) => this.keyDown(event));
    this.draw();
  }

  get graph() {
    return this.history.now;
  }

  tools() {
    const tool = (label, title, run) => h("button", { type: "button", title, onclick: run }, label);
    this.undoTool = tool("Undo", "Ctrl+Z", () => this.undo());
    this.redoTool = tool("Redo", "Ctrl+Y", () => this.redo());
    this.deleteTool = tool("Delete", "Del", () => this.remove());
    this.linkTool = tool("Link", "L: from the selected node or LAN to the one that is selected next", () => this.join("link"));
    this.trafficTool = tool("Traffic", "T: from the selected node to the one that is selected next", () => this.join("traffic"));
    return h("div", { class: "tools", role: "toolbar", "aria-label": "Drawing" },
      tool("Node", "N", () => this.add("node")),
      tool("LAN", "A", () => this.add("lan")),
      this.linkTool, this.trafficTool, this.deleteTool,
      h("span", { class: "gap" }), this.undoTool, this.redoTool,
      h("span", { class: "gap" }),
      tool("Arrange", "Place all nodes and LANs automatically", () => this.apply(g.withPositions(this.graph, true), true)),
      tool("Fit", "0: show all", () => this.fit()),
      tool("+", "Zoom in", () => this.zoom(0.8)),
      tool("−", "Zoom out", () => this.zoom(1.25)));
  }

  // Shows another graph, and clears the history of changes. Boxes without a position get one.
  show(graph) {
    const first = this.graph.nodes.length === 0;
    this.history = new g.History(g.withPositions(graph));
    this.origin = { shown: this.history.now, graph };
    if (this.chosen && !g.item(this.graph, this.chosen)) this.choose(null);
    if (first) this.fit();
    else this.draw();
  }

  apply(graph, refit = false) {
    if (!graph) return this.showStatus("Not possible: a link connects two nodes, or a node and a LAN; traffic connects two nodes.");
    this.history.do(g.withPositions(graph));
    if (this.chosen && !g.item(this.graph, this.chosen)) this.chosen = null;
    this.draw();
    if (refit) this.fit();
    const silent = this.graph.nodes.length > 1 && !this.graph.traffic.length;
    this.showStatus(silent ? "There is no traffic yet: select a node, press T, then select the node to which it sends." : "");
    this.changed();
  }

  undo() {
    if (!this.history.undo()) return;
    this.chosen = null;
    this.draw();
    this.changed();
  }

  redo() {
    if (!this.history.redo()) return;
    this.chosen = null;
    this.draw();
    this.changed();
  }

  // If all changes are undone, reports the original graph, without the positions that were only computed.
  changed() {
    this.onChange(this.graph === this.origin.shown ? this.origin.graph : this.graph);
  }

  showStatus(text) {
    this.status.textContent = text;
  }

  // Adds a node or LAN at the first free position, in rows of three.
  add(kind) {
    const taken = [...g.positions(this.graph).values()];
    const [left, top] = taken.length ? [0, 1].map((axis) => Math.min(...taken.map((at) => at[axis]))) : [this.view.x + 120, this.view.y + 100];
    const spot = (at) => [left + 240 * (at % 3), top + 140 * Math.floor(at / 3)];
    const isFree = ([x, y]) => taken.every(([a, b]) => Math.abs(a - x) >= 180 || Math.abs(b - y) >= 80);
    let at = 0;
    while (!isFree(spot(at))) at += 1;
    this.addAt(kind, ...spot(at));
  }

  addAt(kind, x, y) {
    const index = kind === "node" ? this.graph.nodes.length : this.graph.lans.length;
    this.apply(kind === "node" ? g.addNode(this.graph, x, y) : g.addLan(this.graph, x, y));
    const { x: left, y: top, w, h: high } = this.view;
    if (x < left + 60 || x > left + w - 60 || y < top + 30 || y > top + high - 30) this.fit();
    this.choose(g.id(kind, index), true);
  }

  remove() {
    if (!this.chosen) return this.showStatus("Select a node, LAN, link or traffic first.");
    const gone = this.chosen;
    this.chosen = null;
    this.apply(g.remove(this.graph, gone));
    this.canvas.querySelector("[tabindex]")?.focus();
  }

  // Begins a link or traffic: from the selected box to the box that is selected next.
  join(kind) {
    const from = this.chosen && isBox(this.chosen) ? this.chosen : null;
    this.joining = { kind, from };
    this.showStatus(from ? `From ${g.item(this.graph, from).name} to …` : `${kind === "link" ? "Link" : "Traffic"} from …`);
    this.draw();
  }

  choose(what, focus = false) {
    if (this.joining && what && isBox(what)) {
      const { kind, from } = this.joining;
      if (!from) {
        this.joining.from = what;
        this.showStatus(`From ${g.item(this.graph, what).name} to …`);
        return this.draw();
      }
      this.joining = null;
      this.showStatus("");
      const [list, at] = kind === "link" ? ["link", this.graph.links.length] : ["traffic", this.graph.traffic.length];
      this.apply(kind === "link" ? g.connect(this.graph, from, what) : g.addTraffic(this.graph, from, what));
      what = g.item(this.graph, g.id(list, at)) ? g.id(list, at) : what;
    }
    this.chosen = what;
    this.draw();
    if (focus && what) this.element(what)?.focus();
  }

  element(what) {
    return this.canvas.querySelector(`[data-id="${what}"]`);
  }

  // Mouse and touch: drags a box, pans the background, or selects a link or traffic.
  pointerDown(event) {
    if (event.button > 1) return;
    const what = event.target.closest("[data-id]")?.dataset.id;
    const start = this.position(event);
    if (what && (this.joining || !isBox(what))) return this.choose(what, true);
    if (what) this.choose(what);
    else if (this.chosen || this.joining) {
      this.joining = null;
      this.showStatus("");
      this.choose(null);
    }
    const before = this.graph;
    const box = what && [g.item(before, what).x, g.item(before, what).y];
    const origin = { ...this.view };
    let moved = null;
    const drag = (next) => {
      const [x, y] = this.position(next, origin);
      const [dx, dy] = [x - start[0], y - start[1]];
      if (!moved && Math.hypot(dx, dy) < 4) return;
      if (what) {
        moved = g.move(before, what, box[0] + dx, box[1] + dy);
        this.history.now = moved;
      } else {
        moved = before;
        this.view = { ...origin, x: origin.x - dx, y: origin.y - dy };
      }
      this.draw();
    };
    const drop = () => {
      window.removeEventListener("pointermove", drag);
      window.removeEventListener("pointerup", drop);
      window.removeEventListener("pointercancel", drop);
      if (what && moved) {
        this.history.now = before;
        this.apply(moved);
      }
      if (what) this.element(what)?.focus();
    };
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", drop);
    window.addEventListener("pointercancel", drop);
  }

  doubleClick(event) {
    if (event.target.closest("[data-id]")) return this.panel.querySelector("input")?.select();
    this.addAt("node", ...this.position(event));
  }

  // Returns the position of the mouse in the drawing.
  position(event, view = this.view) {
    const frame = this.canvas.getBoundingClientRect();
    const scale = Math.max(view.w / frame.width, view.h / frame.height);
    const left = view.x - (frame.width * scale - view.w) / 2;
    const top = view.y - (frame.height * scale - view.h) / 2;
    return [left + (event.clientX - frame.left) * scale, top + (event.clientY - frame.top) * scale];
  }

  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.1 : 0.9, this.position(event));
  }

  zoom(factor, [x, y] = [this.view.x + this.view.w / 2, this.view.y + this.view.h / 2]) {
    const w = Math.min(8000, Math.max(120, this.view.w * factor));
    const own = w / this.view.w;
    this.view = { x: x - (x - this.view.x) * own, y: y - (y - this.view.y) * own, w, h: this.view.h * own };
    this.draw();
  }

  fit() {
    const at = [...g.positions(this.graph).values()];
    this.view = at.length ? frame(at, 480, 300) : { x: 0, y: 0, w: 720, h: 420 };
    this.draw();
  }

  keyDown(event) {
    const typing = event.target.closest("input, select, textarea");
    const letter = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && (letter === "z" || letter === "y")) {
      event.preventDefault();
      return letter === "y" || event.shiftKey ? this.redo() : this.undo();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const what = event.target.closest("[data-id]")?.dataset.id ?? null;
    if (what && ARROWS[event.key] && isBox(what)) {
      event.preventDefault();
      const [dx, dy] = ARROWS[event.key];
      const own = g.item(this.graph, what);
      this.chosen = what;
      this.apply(g.move(this.graph, what, own.x + dx * g.GRID, own.y + dy * g.GRID));
      return this.element(what)?.focus();
    }
    const keys = {
      n: () => this.add("node"),
      a: () => this.add("lan"),
      l: () => this.join("link"),
      t: () => this.join("traffic"),
      0: () => this.fit(),
      delete: () => this.remove(),
      backspace: () => this.remove(),
      escape: () => {
        this.joining = null;
        this.showStatus("");
        this.choose(null);
      },
      enter: () => what && this.choose(what, true),
      " ": () => what && this.choose(what, true),
      f2: () => this.panel.querySelector("input")?.select(),
    };
    if (event.target.closest("button") && (letter === "enter" || letter === " ")) return;
    if (what && ["l", "t", "delete", "backspace", "f2"].includes(letter) && !this.joining) this.chosen = what;
    if (keys[letter]) {
      event.preventDefault();
      keys[letter]();
    }
  }

  draw() {
    const focused = document.activeElement?.dataset?.id;
    const { x, y, w, h: high } = this.view;
    this.canvas.setAttribute("viewBox", `${x} ${y} ${w} ${high}`);
    this.canvas.replaceChildren(arrowhead(), ...picture(this.graph, { chosen: this.chosen, from: this.joining?.from, handles: true }));
    this.undoTool.disabled = !this.history.past.length;
    this.redoTool.disabled = !this.history.future.length;
    this.deleteTool.disabled = !this.chosen;
    this.linkTool.setAttribute("aria-pressed", this.joining?.kind === "link");
    this.trafficTool.setAttribute("aria-pressed", this.joining?.kind === "traffic");
    if (focused) this.element(focused)?.focus();
    const key = `${this.chosen} ${this.graph.nodes.length > 0} ${JSON.stringify(this.chosen && g.item(this.graph, this.chosen))}`;
    if (key !== this.panelKey && !this.panel.contains(document.activeElement)) {
      this.panelKey = key;
      this.panel.replaceChildren(...properties(() => this.graph, this.chosen, (graph) => this.apply(graph)));
    }
  }
}

const help = () =>
  h("details", { class: "help" }, h("summary", {}, "Keys"),
    h("p", { id: "drawing-help" }, "N adds a node, A a LAN. L adds a link and T traffic, from the selected box to the one that is selected next. Arrow keys move the selection, Delete removes it, F2 renames it. Ctrl+Z undoes, 0 shows all. Drag the background to pan; Ctrl and the wheel zoom; a double click adds a node."));
