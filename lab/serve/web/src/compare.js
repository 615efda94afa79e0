// The page that compares several experiments.

import { $, embeddedData } from "./dom.js";
import { get } from "./api.js";
import { Curves } from "./curves.js";
import { axes } from "./swept_keys.js";
import { Points } from "./table.js";

const experiments = embeddedData("experiments");
const curves = new Curves($("#curves"), { title: "Curves of all experiments" });
const points = new Points($("#points"));

// A setting in which the experiments differ can be an axis, too.
const lists = await Promise.all(experiments.map(async ({ id, name, differing }) => {
  const rows = await get(`/api/experiments/${id}/points`).catch(() => []);
  return rows.map((row) => ({ ...differing, ...row, of: `${name} (${id})` }));
}));
const rows = lists.flat();
$("#say").textContent = rows.length ? "" : "None of these experiments has results yet.";
curves.show(rows);
points.show(rows, axes(rows));
