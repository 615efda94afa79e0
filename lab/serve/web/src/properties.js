// The fields of the element that is selected in the drawing.

import { h } from "./dom.js";
import * as g from "./graph.js";

const LINE = [["rate", "Rate"], ["delay", "Delay"], ["loss", "Loss"], ["queue", "Queue"], ["discipline", "Discipline"]];

let count = 0;
function field(label, value, set, { list = null, swept = false } = {}) {
  count += 1;
  const id = `field-${count}`;
  const input = h("input", { id, value: value ?? "", list, autocomplete: "off", spellcheck: "false", disabled: swept });
  input.addEventListener("change", () => set(input.value.trim()));
  return h("div", { class: "field" }, h("label", { for: id }, label), input, swept && h("small", {}, "swept"));
}

function line(own, put, swept) {
  return LINE.map(([key, label]) => field(label, own[key], (value) => put(key, value), { swept: swept(key) }));
}

// Returns the fields. `read` returns the current graph, which may have changed since the fields were shown.
export function properties(read, what, done) {
  const graph = read();
  if (!what) return [h("p", { class: "soft" }, graph.nodes.length ? "Select a node, LAN, link or traffic to change it." : "Add a node to begin.")];
  const own = g.item(graph, what);
  if (!own) return [];
  const [kind, index] = g.parseId(what);
  const edit = (fields) => done(g.change(read(), what, fields(g.item(read(), what))));
  const put = (key) => (value) => edit(() => ({ [key]: value }));
  const putLine = (key, value) => edit((now) => ({ line: { ...now.line, [key]: value } }));
  const putBack = (key, value) => edit((now) => ({ back: { ...now.back, [key]: value } }));
  const title = { node: "Node", lan: "LAN", link: "Link", traffic: index ? "Background traffic" : "Measured traffic" }[kind];
  const name = () => field("Name", own.name, (value) => value && put("name")(value));
  const heading = h("h2", {}, title);
  const swept = (key) => graph.swept.some((axis) => axis === `network.${key}` || axis === `network.${kind}s.${own.name}.${key}` || axis === `network.${kind}s.${index}.${key}`);
  switch (kind) {
    case "node":
      return [heading, name()];
    case "lan":
      return [heading, name(), ...line(own.line, putLine, swept),
        h("p", { class: "soft" }, own.nodes.length ? "Members" : "No members yet: press L, then select a node."),
        ...own.nodes.map((node) => h("button", { type: "button", class: "small", "aria-label": `remove ${node}`, onclick: () => done(g.removeMember(read(), index, node)) }, `${node} ×`))];
    case "link": {
      const both = h("input", { type: "checkbox", id: "both-ways", checked: !own.back });
      both.addEventListener("change", () => edit((now) => ({ back: both.checked ? null : { ...now.line } })));
      return [heading, name(), ...line(own.line, putLine, swept),
        h("div", { class: "check" }, both, h("label", { for: "both-ways" }, "the same in both directions")),
        ...(own.back ? [h("h2", {}, `${own.to} → ${own.from}`), ...line(own.back, putBack, () => false)] : [])];
    }
    default:
      return [heading, h("p", { class: "soft" }, `${own.from} → ${own.to}`),
        field("Application", own.kind, put("kind"), { list: "kinds" }),
        field(index ? "Transport" : "Transports", own.transport, put("transport"), { list: "all-transports" }),
        ...[["size", "Size"], ["rate", "Rate"], ["interval", "Interval"], ["start", "Start"]]
          .map(([key, label]) => field(label, own[key], (value) => put(key)(value || null), { swept: graph.swept.includes(`workload.${key}`) }))];
  }
}
