import test from "node:test";
import assert from "node:assert/strict";

// A stand-in for DOM elements with the members that PointChoice uses.
class FakeElement {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], listeners: {}, textContent: "", validity: "" });
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
    if (name === "id") this.id = value;
  }
  addEventListener(kind, listener) {
    this.listeners[kind] = listener;
  }
  append(...children) {
    for (const child of children) typeof child === "string" ? (this.textContent += child) : this.children.push(child);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  setCustomValidity(problem) {
    this.validity = problem;
  }
  get options() {
    return this.children;
  }
  get selectedIndex() {
    return (this.index ??= Math.max(0, this.children.findIndex((option) => "selected" in option.attributes)));
  }
  choose(index) {
    this.index = index;
    this.listeners.change();
  }
}
globalThis.document = { createElement: (tag) => new FakeElement(tag) };
const { PointChoice } = await import("../src/point_choice.js");

const plan = (values) => ({
  axes: [["transport", "tcp", "sctp"], ["RTT", "10ms", "40ms"]].map(([name, ...texts]) => ({ keys: [name], name, unit: "", values: texts.map((text) => ({ text, number: null })) })),
  points: values.map((own, index) => ({ index, values: own, repetitions: 3 })),
});

function choice(answers) {
  const place = Object.assign(new FakeElement("div"), { id: "place" });
  const seen = [];
  const own = new PointChoice(place, async () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  }, (point) => seen.push(point?.index));
  return { own, place, seen };
}

test("each axis has a labelled select, and the selected values give the point", async () => {
  const { own, place, seen } = choice([plan([[0, 0], [0, 1], [1, 0], [1, 1]])]);
  assert.equal((await own.chosen()).index, 0);
  const fields = place.children.slice(0, -1);
  assert.deepEqual(fields.map((field) => field.children[0].textContent), ["transport", "RTT"]);
  for (const { children: [label, select] } of fields) assert.equal(label.attributes.for, select.id);
  own.selects[0].choose(1);
  own.selects[1].choose(1);
  assert.equal((await own.chosen()).index, 3);
  assert.deepEqual(seen, [0, 2, 3]);
});

test("values without a point are marked, explained and refused", async () => {
  const { own, place, seen } = choice([plan([[0, 0], [1, 1]])]);
  await own.load();
  assert.deepEqual(own.selects[1].options.map((option) => option.textContent), ["10ms", "40ms (no point)"]);
  own.selects[1].choose(1);
  const problem = "The experiment has no point with transport tcp, RTT 40ms. Choose another value.";
  assert.equal(place.children.at(-1).textContent, problem);
  assert.deepEqual(own.selects.map((select) => select.validity), ["", problem]);
  await assert.rejects(own.chosen(), { message: problem });
  own.selects[0].choose(1);
  assert.equal((await own.chosen()).index, 1);
  assert.equal(place.children.at(-1).textContent, "");
  assert.deepEqual(own.selects.map((select) => select.validity), ["", ""]);
  assert.deepEqual(seen, [0, undefined, 1]);
});

test("a choice is kept when the plan is reloaded, and a failed request is repeated", async () => {
  const { own } = choice([new Error("gone"), plan([[0, 0], [0, 1], [1, 0], [1, 1]]), plan([[1, 1], [1, 0], [0, 1], [0, 0]])]);
  await assert.rejects(own.chosen(), { message: "gone" });
  await own.chosen();
  own.selects[1].choose(1);
  await own.load();
  assert.deepEqual(own.values, [0, 1]);
  assert.equal((await own.chosen()).index, 2);
});
