// Uploads and deletes files of a user or a project.

import { $, $$, say } from "./dom.js";
import { request, errorOf } from "./api.js";

const form = $("#upload");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const folder = $("#folder").value.trim().replace(/^\/+|\/+$/g, "");
  try {
    for (const file of $("#file").files) {
      say(`Uploading ${file.name} …`);
      const path = [...folder.split("/").filter(Boolean), file.name].map(encodeURIComponent).join("/");
      const answer = await fetch(form.dataset.base + path, { method: "PUT", body: file, headers: { "content-type": "application/octet-stream" }, credentials: "same-origin" });
      if (!answer.ok) throw await errorOf(answer);
    }
    location.reload();
  } catch (error) {
    say(error.message);
  }
});

for (const button of $$("[data-delete]")) {
  button.addEventListener("click", async () => {
    if (button.dataset.sure === undefined) {
      button.dataset.sure = "";
      button.textContent = "Really delete";
      return;
    }
    try {
      await request("DELETE", button.dataset.delete);
      button.closest("tr").remove();
    } catch (error) {
      say(error.message);
    }
  });
}
