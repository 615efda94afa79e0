// Sends the fields of a form to the API as a JSON object, then shows a message, or loads the next page.

import { $$ } from "./dom.js";
import { request } from "./api.js";

for (const form of $$("form[data-to]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = form.querySelector("[role=status]");
    const body = {};
    for (const field of form.elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") body[field.name] = field.checked;
      else if (field.type === "number") body[field.name] = Number(field.value);
      else if (field.value) body[field.name] = field.value;
    }
    if ("again" in body) {
      if (body.again !== body.password) return (said.textContent = "The two passwords differ.");
      delete body.again;
    }
    const button = form.querySelector("button:not([type=button])");
    button.disabled = true;
    try {
      // Replaces a name in braces in the path by the value of this field.
      const to = form.dataset.to.replace(/\{(\w+)\}/g, (_, name) => {
        const value = body[name] ?? "";
        delete body[name];
        return encodeURIComponent(value);
      });
      const answer = await request(form.dataset.method ?? "POST", to, Object.keys(body).length ? body : undefined);
      if (form.dataset.show) said.textContent = `${form.dataset.show} ${answer?.[form.dataset.field] ?? ""}`.trim();
      else location.assign(form.dataset.then ?? location.href);
    } catch (error) {
      said.textContent = error.message;
    }
    button.disabled = false;
  });
}
