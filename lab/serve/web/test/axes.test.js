import test from "node:test";
import assert from "node:assert/strict";
import { Axes } from "../src/axes.js";

const axis = (name, ...texts) => ({ keys: [`network.${name}`], name, unit: "", values: texts.map((text) => ({ text, number: null })) });

// Three axes of two values, of which only the points with an even sum of indices exist.
const even = () => ({
  axes: [axis("transport", "tcp", "sctp"), axis("RTT", "10ms", "40ms"), axis("loss", "0%", "1%")],
  points: [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]].map((values, index) => ({ index, values, repetitions: 5 })),
});

test("a combination of values is a point, or none", () => {
  const axes = new Axes(even());
  assert.equal(axes.point([1, 0, 1]).index, 2);
  assert.equal(axes.point([1, 0, 0]), undefined);
  assert.equal(axes.first.index, 0);
  assert.equal(axes.words([1, 0, 1]), "transport sctp, RTT 10ms, loss 1%");
});

test("a value without a point beside the others is known", () => {
  const axes = new Axes(even());
  assert.deepEqual([0, 1].map((value) => axes.has([0, 1, 1], 1, value)), [false, true]);
  assert.deepEqual([0, 1].map((value) => axes.has([0, 0, 1], 2, value)), [true, false]);
});

test("one point has no axes", () => {
  const axes = new Axes({ axes: [], points: [{ index: 0, values: [], repetitions: 1 }] });
  assert.equal(axes.point([]).index, 0);
  assert.equal(axes.words([]), "");
});

test("the same values are chosen after the experiment has changed, if they still have a point", () => {
  const before = new Axes(even());
  const after = new Axes({
    axes: [axis("loss", "1%", "2%"), axis("RTT", "5ms", "40ms")],
    points: [[0, 0], [0, 1], [1, 0], [1, 1]].map((values, index) => ({ index, values, repetitions: 5 })),
  });
  assert.equal(after.pointLike(before, [0, 1, 1]).index, 1, "RTT 40ms and loss 1%");
  assert.equal(after.pointLike(before, [0, 0, 0]).index, 0, "neither exists any more");
  assert.equal(before.pointLike(after, [0, 0]).index, 0, "the transport was no axis");
});
