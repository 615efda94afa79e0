// The form: every field is a key of the experiment; several values, separated by commas, are an axis.

import { $$, h } from "./dom.js";

export class Question {
  constructor(place, changed) {
    this.place = place;
    this.changed = changed;
    this.own = { transports: [], fields: {} };
    this.list = place.querySelector("#transports");
    for (const input of $$("[data-key]", place)) input.addEventListener("change", () => this.set(input.dataset.key, input.value.trim()));
    place.querySelector("#add-transport").addEventListener("click", () => {
      this.own.transports.push("");
      this.draw();
      this.list.lastElementChild.querySelector("input").focus();
    });
  }

  set(key, value) {
    const fields = { ...this.own.fields };
    if (value) fields[key] = value;
    else delete fields[key];
    this.own = { ...this.own, fields };
    this.notify();
  }

  notify() {
    this.changed({ ...this.own, line: "", transports: this.own.transports.filter(Boolean) });
  }

  show(own) {
    this.own = { transports: [...own.transports], fields: { ...own.fields } };
    this.draw();
    for (const input of $$("[data-key]", this.place)) {
      if (input !== document.activeElement) input.value = own.fields[input.dataset.key] ?? "";
    }
  }

  draw() {
    this.list.replaceChildren(...this.own.transports.map((spec, at) => {
      const input = h("input", { value: spec, list: "all-transports", "aria-label": `Transport ${at + 1}`, spellcheck: "false", placeholder: "tcp, sctp:streams=8, udp" });
      input.addEventListener("change", () => {
        this.own.transports[at] = input.value.trim();
        this.notify();
      });
      const remove = () => {
        this.own.transports.splice(at, 1);
        this.draw();
        this.notify();
      };
      return h("li", {}, input, h("button", { type: "button", class: "small", "aria-label": `remove ${spec || "this transport"}`, onclick: remove }, "×"));
    }));
  }
}
