// The home page: updates the rows of experiments.

import { $, $$, h } from "./dom.js";
import { get, post, watch } from "./api.js";
import { formatDuration, STATES } from "./words.js";

const row = (id) => $(`[data-experiment="${id}"]`);

function progress(own, { share, left, runs, runs_wanted }) {
  const bar = $("progress", own);
  if (bar) bar.value = share;
  const text = $(".left", own);
  if (text) text.textContent = left == null ? (runs_wanted ? `${runs} of ${runs_wanted} runs` : "") : `${formatDuration(left)} left`;
}

function state(experiment) {
  const own = row(experiment.id);
  if (!own) return $("#say").replaceChildren("There is a new experiment. ", h("a", { href: "/" }, "Show it"));
  own.dataset.state = experiment.state;
  const chip = $(".state", own);
  chip.textContent = STATES[experiment.state];
  chip.className = `state s-${experiment.state}`;
  $(".why", own).textContent = experiment.why;
  progress(own, experiment.progress);
}

watch("/api/events", {
  state,
  progress: (now, id) => row(id) && progress(row(id), now),
  closed: (_, id) => row(id)?.remove(),
});

for (const button of $$("[data-study]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const experiment = await post(`/api/studies/${button.dataset.study}/run`, { quick: true });
      location.assign(`/experiments/${experiment.id}`);
    } catch (error) {
      button.disabled = false;
      $("#say").textContent = error.message;
    }
  });
}

$("#compare-chosen")?.addEventListener("click", () => {
  const chosen = $$("input[name=chosen]:checked").map((box) => box.value);
  if (chosen.length < 2) $("#say").textContent = "Select two or more experiments to compare.";
  else location.assign(`/compare?of=${chosen.join(",")}`);
});

const cores = $("#cores");
if (cores) {
  const update = async () => {
    const machine = await get("/api/machine").catch(() => null);
    if (machine) cores.textContent = `${machine.free_cores} of ${machine.cores} cores free`;
  };
  update();
  setInterval(update, 5000);
}
