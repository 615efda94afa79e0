import assert from "node:assert/strict";
import { test } from "node:test";
import { axes, isAt, valuesOf } from "../src/swept_keys.js";

test("an option is an axis, and points of other transports are at all of its values", () => {
  const rows = [
    { label: "tcp", "network.loss": "1%", "network.loss_percent": 1 },
    { label: "sctp", "network.loss": "1%", "network.loss_percent": 1, "sctp.rto_min": "100ms", "sctp.rto_min_ms": 100 },
    { label: "sctp", "network.loss": "1%", "network.loss_percent": 1, "sctp.rto_min": "1s", "sctp.rto_min_ms": 1000 },
  ];
  assert.deepEqual(axes(rows), ["sctp.rto_min"]);
  assert.deepEqual(valuesOf(rows, "sctp.rto_min"), ["100ms", "1s"]);
  assert.deepEqual(rows.map((row) => isAt(row, "sctp.rto_min", "1s")), [true, false, true]);
  assert.equal(isAt({ label: "tcp" }, "network.loss", "1%"), false);
});

test("an option with one value is no axis", () => {
  assert.deepEqual(axes([{ label: "tcp" }, { label: "sctp", "sctp.rto_min": "1s" }]), []);
});
