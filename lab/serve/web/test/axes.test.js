import test from "node:test";
import assert from "node:assert/strict";
import { Axes } from "../src/axes.js";

const axis = (name, ...texts) => ({ keys: [`network.${name}`], name, unit: "", values: texts.map((text) => ({ text, number: null })) });

// Returns three axes of two values each; only combinations with an even sum of indices are points.
const evenSums = () => ({
  axes: [axis("transport", "tcp", "sctp"), axis("RTT", "10ms", "40ms"), axis("loss", "0%", "1%")],
  points: [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]].map((values, index) => ({ index, values, repetitions: 5 })),
});

test("point returns undefined for values without a point", () => {
  const axes = new Axes(evenSums());
  assert.equal(axes.point([1, 0, 1]).index, 2);
  assert.equal(axes.point([1, 0, 0]), undefined);
  assert.equal(axes.first.index, 0);
  assert.equal(axes.describe([1, 0, 1]), "transport sctp, RTT 10ms, loss 1%");
});

test("has tells whether another value of one axis has a point", () => {
  const axes = new Axes(evenSums());
  assert.deepEqual([0, 1].map((value) => axes.has([0, 1, 1], 1, value)), [false, true]);
  assert.deepEqual([0, 1].map((value) => axes.has([0, 0, 1], 2, value)), [true, false]);
});

test("a plan of one point has no axes", () => {
  const axes = new Axes({ axes: [], points: [{ index: 0, values: [], repetitions: 1 }] });
  assert.equal(axes.point([]).index, 0);
  assert.equal(axes.describe([]), "");
});

test("pointLike keeps the values that the new plan has, or returns its first point", () => {
  const before = new Axes(evenSums());
  const after = new Axes({
    axes: [axis("loss", "1%", "2%"), axis("RTT", "5ms", "40ms")],
    points: [[0, 0], [0, 1], [1, 0], [1, 1]].map((values, index) => ({ index, values, repetitions: 5 })),
  });
  assert.equal(after.pointLike(before, [0, 1, 1]).index, 1, "RTT 40ms and loss 1%");
  assert.equal(after.pointLike(before, [0, 0, 0]).index, 0, "neither exists any more");
  assert.equal(before.pointLike(after, [0, 0]).index, 0, "the transport was no axis");
});
