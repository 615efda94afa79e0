// The choice of a point: one select for each axis of the experiment.

import { h } from "./dom.js";
import { Axes } from "./axes.js";

const NO_POINT = " (no point)";

export class PointChoice {
  // `plan` requests the plan from the server. `changed` is called with the chosen point, or undefined if no point has the chosen values.
  constructor(place, plan, changed = () => {}) {
    Object.assign(this, { place, plan, changed });
    this.axes = null;
    this.selects = [];
  }

  // Shows the axes of the plan as it is now. The chosen values stay if the plan has a point with them; otherwise the first point is chosen.
  async load() {
    const axes = new Axes(await this.plan());
    const point = this.axes ? axes.pointLike(this.axes, this.values) : axes.first;
    this.axes = axes;
    this.build(point.values);
    this.mark();
  }

  // Shows the axes again if they were shown before.
  reload() {
    if (this.axes) this.load().catch((error) => (this.status.textContent = error.message));
  }

  // Returns the chosen point; the error says why there is none.
  async chosen() {
    if (!this.axes) await this.load();
    const point = this.axes.point(this.values);
    if (!point) throw new Error(this.problem());
    return point;
  }

  get values() {
    return this.selects.map((select) => select.selectedIndex);
  }

  build(values) {
    const id = (axis) => `${this.place.id}-${axis}`;
    this.selects = this.axes.list.map((axis, at) => {
      const options = axis.values.map(({ text }, value) => h("option", { selected: value === values[at] }, text));
      const select = h("select", { id: id(at), "aria-describedby": id("said") }, ...options);
      select.addEventListener("change", () => this.mark(select));
      return select;
    });
    const fields = this.selects.map((select, at) => h("div", { class: "field" }, h("label", { for: select.id }, this.axes.list[at].name), select));
    this.status = h("p", { class: "said", role: "status", id: id("said") });
    this.place.replaceChildren(...fields, this.status);
  }

  // Marks values that have no point together with the other chosen values. The user can choose such a value, because another axis may be changed next, but cannot submit it.
  mark(changed = this.selects[0]) {
    const { values } = this;
    this.axes.list.forEach((axis, at) => axis.values.forEach(({ text }, value) => {
      this.selects[at].options[value].textContent = text + (this.axes.has(values, at, value) ? "" : NO_POINT);
    }));
    const point = this.axes.point(values);
    for (const select of this.selects) select.setCustomValidity("");
    if (!point) changed.setCustomValidity(this.problem());
    this.status.textContent = point ? "" : this.problem();
    this.changed(point);
  }

  problem() {
    return `The experiment has no point with ${this.axes.describe(this.values)}. Choose another value.`;
  }
}
