import test from "node:test";
import assert from "node:assert/strict";
import * as g from "../src/graph.js";

// Returns the network of Figure 2.2 of eklund2004: three nodes on a LAN, and a link between two of them.
function figure() {
  let graph = [[0, 0], [200, 0], [100, 200]].reduce((graph, [x, y]) => g.addNode(graph, x, y), g.empty());
  graph = g.addLan(g.connect(graph, "node 0", "node 1"), 100, 100);
  for (const node of ["node 0", "node 1", "node 2"]) graph = g.connect(graph, node, "lan 0");
  return graph;
}

test("nodes are named client, server, node1, and join a LAN only once", () => {
  const graph = figure();
  assert.deepEqual(graph.nodes.map((node) => node.name), ["client", "server", "node1"]);
  assert.deepEqual(graph.lans[0].nodes, ["client", "server", "node1"]);
  assert.equal(g.connect(graph, "node 0", "lan 0"), null, "a node is on a LAN once");
  assert.equal(g.connect(graph, "node 0", "node 0"), null);
});

test("links, traffic and LANs follow when a node is renamed or removed", () => {
  const graph = g.addTraffic(figure(), "node 0", "node 1");
  const renamed = g.change(graph, "node 0", { name: "host" });
  assert.equal(renamed.links[0].from, "host");
  assert.equal(renamed.traffic[0].from, "host");
  assert.ok(renamed.lans[0].nodes.includes("host"));
  const without = g.remove(renamed, "node 0");
  assert.deepEqual([without.links, without.traffic], [[], []]);
  assert.deepEqual(without.lans[0].nodes, ["server", "node1"]);
});

test("every change can be undone and redone", () => {
  const history = new g.History(g.empty());
  const steps = [(graph) => g.addNode(graph, 0, 0), (graph) => g.addNode(graph, 99, 0), (graph) => g.connect(graph, "node 0", "node 1")];
  const seen = steps.map((step) => (history.do(step(history.now)), history.now));
  for (const _ of steps) assert.ok(history.undo());
  assert.deepEqual(history.now, g.empty());
  assert.ok(!history.undo());
  for (const graph of seen) assert.ok(history.redo() && history.now === graph);
  assert.ok(!history.redo());
});

test("boxes without a position get one that is distinct and deterministic", () => {
  const bare = g.withPositions(figure(), true);
  assert.deepEqual(bare, g.withPositions(figure(), true));
  const at = [...g.positions(bare).values()];
  at.forEach((one, index) => at.slice(index + 1).forEach((other) => assert.ok(Math.hypot(one[0] - other[0], one[1] - other[1]) > 60)));
  const moved = g.withPositions(g.addNode({ ...g.empty(), nodes: [{ name: "a", x: 40, y: 60 }] }, 1, 1));
  assert.deepEqual([moved.nodes[0].x, moved.nodes[0].y], [40, 60]);
});
