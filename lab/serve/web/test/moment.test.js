import test from "node:test";
import assert from "node:assert/strict";
import { stateOf, hopsInProgress, blockingMessage } from "../src/moment.js";

// Message 0 is lost and retransmitted. Message 1 of the same stream arrives and waits for it; message 2 of another stream does not wait.
const messages = [
  { id: 0, stream: 0, due: 0, request: [0, 1, 30, 40, 40], reply: null },
  { id: 1, stream: 0, due: 5, request: [5, 6, 6, 16, 40], reply: null },
  { id: 2, stream: 1, due: 5, request: [5, 6, 6, 16, 16], reply: null },
];

test("state of a message follows from its times", () => {
  assert.deepEqual([0, 0.5, 2, 31, 40].map((now) => stateOf(messages[0], now)), ["buffer", "buffer", "lost", "way", "done"]);
  assert.deepEqual([4, 10, 20, 41].map((now) => stateOf(messages[1], now)), ["ahead", "way", "held", "done"]);
  assert.equal(stateOf({ id: 3, stream: 0, due: 0, request: null, reply: null }, 5), "never");
});

test("a message is blocked only by an earlier message of its own stream", () => {
  assert.equal(blockingMessage(messages, messages[1], 20).id, 0);
  assert.equal(blockingMessage(messages, messages[2], 20), null);
});

test("a hop in progress is queued, on the link, or falling after its loss", () => {
  const hops = [
    { queued: 0, sent: 10, ends: 20, lost: null },
    { queued: 5, sent: null, ends: 6, lost: "dropped: queue full" },
    { queued: 100, sent: 100, ends: 110, lost: null },
  ];
  assert.equal(hopsInProgress(hops, 2)[0].queued, true);
  assert.equal(hopsInProgress(hops, 15)[0].at, 0.5);
  assert.ok(hopsInProgress(hops, 7).some((own) => own.gone > 0));
  assert.ok(hopsInProgress(hops, 6).some((own) => own.gone === 0), "the moment it is lost");
});
