// The animation of one run: packets on links, queues, and for each message its state and the message that it waits for.
//
// The picture at a time is computed from the whole list of hops and messages, so that time can run forwards and backwards at any speed.

import { h, s } from "./dom.js";
import { get } from "./api.js";
import { frame, picture } from "./picture.js";
import * as g from "./graph.js";
import { FALL_NS, MEANINGS, lowerBound, stateOf, hopsInProgress, blockingMessage } from "./moment.js";

const NS_PER_MS = 1e6;
const COLUMNS = 48;

export class Movie {
  constructor(place, id) {
    this.place = place;
    this.id = id;
    this.now = 0;
    this.speed = -1.5; // decimal logarithm of the ratio of virtual to real time
    this.playing = 0;
  }

  async load(point, repetition) {
    this.pause();
    this.run = await get(`/api/experiments/${this.id}/movie?point=${point}&repetition=${repetition}`);
    // Each point has its own network.
    this.graph = g.withPositions(this.run.graph);
    this.longestHop = Math.max(1, ...this.run.hops.map((hop) => hop.ends - hop.queued));
    this.build();
    this.goTo(this.run.hops[0]?.queued ?? 0);
  }

  build() {
    const { x, y, w, h: high } = frame([...g.positions(this.graph).values()], 420, 200);
    this.packetMarks = s("g", { class: "packets" });
    this.queueMarks = s("g", { class: "queues" });
    this.stage = s("svg", { class: "drawing stage", role: "img", "aria-label": "The network with its packets; the text below describes them", viewBox: `${x} ${y} ${w} ${high}` }, ...picture(this.graph), this.queueMarks, this.packetMarks);
    this.messageRows = s("svg", { class: "lanes", role: "img", "aria-label": "Messages by stream" });
    this.status = h("p", { class: "said", role: "status", "aria-live": "off" });
    this.clock = h("output", {}, "0 ms");
    this.timeInput = h("input", { type: "range", min: 0, max: 1, step: "any", value: 0, "aria-label": "Time" });
    this.timeInput.addEventListener("input", () => this.goTo(Number(this.timeInput.value) * this.run.end));
    this.speedInput = h("input", { type: "range", min: -4, max: 1, step: 0.1, value: this.speed, "aria-label": "Speed", class: "speed" });
    this.speedLabel = h("span", { class: "soft" });
    this.speedInput.addEventListener("input", () => {
      this.speed = Number(this.speedInput.value);
      this.showSpeed();
    });
    const button = (label, title, run) => h("button", { type: "button", title, "aria-label": title, onclick: run }, label);
    this.forwardButton = button("▶", "Play", () => this.play(1));
    this.backwardButton = button("◀", "Play backwards", () => this.play(-1));
    this.place.replaceChildren(
      h("div", { class: "scroll" }, this.stage),
      h("div", { class: "tools", role: "toolbar", "aria-label": "Playback" }, this.backwardButton, this.forwardButton,
        button("⇤", "Previous loss", () => this.goToLoss(-1)), button("⇥", "Next loss", () => this.goToLoss(1)), this.clock, this.timeInput, h("label", { class: "pace" }, "Speed ", this.speedInput), this.speedLabel),
      this.status, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Messages" }, this.messageRows),
      h("ul", { class: "meanings" }, ...Object.entries(MEANINGS).filter(([key]) => key !== "never").map(([key, text]) => h("li", {}, s("svg", { width: 12, height: 12, "aria-hidden": "true" }, s("rect", { width: 12, height: 12, rx: 2, class: `m-${key}` })), ` ${text}`))));
    this.showSpeed();
    const lines = new Map(this.graph.nodes.map((node, index) => [node.name, g.id("node", index)]));
    const places = g.positions(this.graph);
    this.endpoints = this.run.lines.map((line) => {
      const ends = [places.get(lines.get(line.from)), places.get(lines.get(line.to))];
      const lan = line.lan && places.get(g.id("lan", this.graph.lans.findIndex((own) => own.name === line.name)));
      return lan ? [ends[0], lan, ends[1]] : ends;
    });
    this.streams = [...new Set(this.run.messages.map((message) => message.stream))].sort((a, b) => a - b);
  }

  showSpeed() {
    const factor = 10 ** this.speed;
    this.speedLabel.textContent = factor >= 1 ? `${factor.toFixed(1)} × real time` : `1/${Math.round(1 / factor)} of real time`;
  }

  play(direction) {
    if (this.playing === direction) return this.pause();
    this.playing = direction;
    this.showPlaying();
    let last = performance.now();
    const step = (time) => {
      if (!this.playing) return;
      this.goTo(this.now + this.playing * (time - last) * NS_PER_MS * 10 ** this.speed);
      last = time;
      if (this.now <= 0 || this.now >= this.run.end) return this.pause();
      requestAnimationFrame(step);
    };
    if (direction > 0 && this.now >= this.run.end) this.now = 0;
    if (direction < 0 && this.now <= 0) this.now = this.run.end;
    requestAnimationFrame(step);
  }

  pause() {
    this.playing = 0;
    this.showPlaying();
  }

  showPlaying() {
    if (!this.forwardButton) return;
    this.forwardButton.textContent = this.playing > 0 ? "❙❙" : "▶";
    this.backwardButton.textContent = this.playing < 0 ? "❙❙" : "◀";
    this.forwardButton.setAttribute("aria-pressed", this.playing > 0);
    this.backwardButton.setAttribute("aria-pressed", this.playing < 0);
  }

  goToLoss(direction) {
    this.pause();
    const losses = this.run.hops.filter((hop) => hop.lost).map((hop) => hop.ends).sort((a, b) => a - b);
    const next = direction > 0 ? losses.find((at) => at > this.now + 1) : losses.findLast((at) => at < this.now - 1);
    if (next === undefined) this.status.textContent = direction > 0 ? "No packet is lost after this time." : "No packet is lost before this time.";
    else this.goTo(next);
  }

  goTo(time) {
    this.now = Math.min(this.run.end, Math.max(0, time));
    this.timeInput.value = this.now / Math.max(1, this.run.end);
    this.draw();
  }

  draw() {
    const { now } = this;
    this.clock.textContent = `${(now / NS_PER_MS).toFixed(now < 1000 * NS_PER_MS ? 2 : 0)} ms`;
    // Hops are in the order of `queued`. Hops that were queued longer ago than the longest hop lasts have ended.
    const from = lowerBound(this.run.hops, now - this.longestHop - FALL_NS);
    const hopsNow = hopsInProgress(this.run.hops.slice(from, from + 4000), now);
    const waiting = new Map();
    const marks = [];
    for (const { hop, at, queued, gone } of hopsNow) {
      const ends = this.endpoints[hop.line];
      if (queued) waiting.set(hop.line, (waiting.get(hop.line) ?? 0) + 1);
      else if (ends.every(Boolean)) marks.push(packet(hop, positionOnLink(ends, gone === undefined ? at : 0.5), gone));
    }
    this.packetMarks.replaceChildren(...marks);
    this.queueMarks.replaceChildren(...[...waiting].filter(([line]) => this.endpoints[line].every(Boolean)).map(([line, count]) => queue(this.endpoints[line], count)));
    this.drawMessages();
  }

  // Draws the messages due around now, one row per stream, with a line from a message that is held back to the message that it waits for.
  drawMessages() {
    const { now, run: { messages } } = this;
    const due = lowerBound(messages, now, "due");
    const first = Math.max(0, Math.min(due - Math.round(COLUMNS * 0.75), messages.length - COLUMNS));
    const shown = messages.slice(first, first + COLUMNS);
    const [wide, high, left] = [17, 20, 62];
    const rows = this.streams.slice(0, 16);
    const x = (message) => left + (message.id - shown[0].id) * wide;
    const y = (message) => rows.indexOf(message.stream) * high + 4;
    const parts = rows.map((stream, row) => s("text", { x: 0, y: row * high + 16, class: "note" }, rows.length > 1 ? `stream ${stream}` : "messages"));
    const held = [];
    for (const message of shown) {
      const state = stateOf(message, now);
      if (rows.includes(message.stream) && state !== "ahead") {
        parts.push(s("rect", { x: x(message), y: y(message), width: wide - 3, height: high - 6, rx: 2, class: `m-${state}` }, s("title", {}, `message ${message.id}: ${MEANINGS[state]}`)));
      }
      if (state === "held") held.push(message);
    }
    for (const message of held) {
      const other = blockingMessage(messages, message, now);
      if (other && other.id >= shown[0].id && rows.includes(other.stream)) parts.push(s("path", { class: "waits", d: `M${x(message) + 7} ${y(message) + 2}q-6 -8 ${x(other) - x(message)} 0` }));
    }
    const width = left + COLUMNS * wide;
    this.messageRows.setAttribute("viewBox", `0 -6 ${width} ${rows.length * high + 8}`);
    this.messageRows.setAttribute("width", width);
    this.messageRows.setAttribute("height", rows.length * high + 8);
    this.messageRows.replaceChildren(...parts);
    const count = (state) => shown.filter((message) => stateOf(message, now) === state).length;
    const blocker = held.length ? blockingMessage(messages, held[0], now) : null;
    const counts = [`${count("buffer")} in the send buffer`, `${count("way")} in flight`, `${count("lost")} to be retransmitted`];
    const idle = shown.every((message) => stateOf(message, now) === "ahead");
    this.status.textContent = idle ? "No message is due yet." : `${counts.join(", ")}${held.length ? `; ${held.length} held back${blocker ? `, waiting for message ${blocker.id}` : ""}` : ""}.`;
  }
}

// Returns the position of a packet between two boxes, shifted to one side, so that the two directions do not overlap.
function positionOnLink(ends, share) {
  const legs = ends.length - 1;
  const leg = Math.min(legs - 1, Math.floor(share * legs));
  const [[x1, y1], [x2, y2]] = [ends[leg], ends[leg + 1]];
  const far = Math.max(1, Math.hypot(x2 - x1, y2 - y1));
  const margin = Math.min(0.3, 46 / far);
  const part = margin + (share * legs - leg) * (1 - 2 * margin);
  return [x1 + (x2 - x1) * part - (5 * (y2 - y1)) / far, y1 + (y2 - y1) * part + (5 * (x2 - x1)) / far];
}

function packet(hop, [x, y], gone) {
  if (gone !== undefined) return s("path", { class: "dropped", opacity: 1 - gone, d: `M${x - 5} ${y - 5 + 14 * gone}l10 10m0 -10l-10 10` });
  const size = hop.octets > 400 ? 5 : hop.octets > 100 ? 4 : 3;
  return s("circle", { class: `packet f-${Math.min(hop.flow, 3)}`, cx: x, cy: y, r: size }, s("title", {}, hop.says));
}

function queue(ends, count) {
  const [[x1, y1], [x2, y2]] = ends;
  const far = Math.max(1, Math.hypot(x2 - x1, y2 - y1));
  const [x, y] = [x1 + ((x2 - x1) / far) * 52, y1 + ((y2 - y1) / far) * 52];
  const bars = Array.from({ length: Math.min(count, 12) }, (_, at) => s("rect", { x: x - 5, y: y - 8 - 4 * at, width: 10, height: 3 }));
  return s("g", { class: "queue" }, ...bars, s("text", { x: x + 9, y: y - 8, class: "note" }, `${count}`));
}
