// The state of a run at one time, computed from the times of its hops and messages.

const NS_PER_MS = 1e6;

// Returns the state of a message at a time. A request or reply has five times: written, first sent, sent for the last time, received, delivered.
export function stateOf(message, now) {
  if (now < message.due) return "ahead";
  const legs = [message.request, message.reply].filter(Boolean);
  const leg = legs.find((own) => now < own[4]) ?? null;
  if (!leg) return legs.length ? "done" : "never";
  const [written, first, last, arrived] = leg;
  if (now < written) return "due";
  if (now < first) return "buffer";
  if (now < last) return "lost";
  if (now < arrived) return "way";
  return "held";
}

export const MEANINGS = { due: "due, not yet written", buffer: "in the send buffer", way: "in flight", lost: "lost, to be retransmitted", held: "received, held back (head-of-line blocking)", done: "delivered", never: "never delivered" };

// Returns the message for which a received message is held back: the first one of its stream that is not complete.
export function blockingMessage(messages, message, now) {
  const way = message.request && now < message.request[4] ? "request" : "reply";
  return messages.find((other) => other.stream === message.stream && other.id < message.id && other.due <= now && (other[way] ? now < other[way][3] : true)) ?? null;
}

// Time for which a lost packet is shown falling, in ns of the run.
export const FALL_NS = 120 * NS_PER_MS;

// Returns the hops in progress at a time: the packet is in the queue, or at a position on the link (`at`, 0 to 1), or was lost and is falling (`gone`, 0 to 1).
export function hopsInProgress(hops, now) {
  const found = [];
  for (const hop of hops) {
    if (hop.queued > now) break;
    if (hop.lost && hop.ends <= now) {
      if (now - hop.ends < FALL_NS) found.push({ hop, gone: (now - hop.ends) / FALL_NS });
    } else if (hop.ends >= now) {
      const waits = hop.sent === null || now < hop.sent;
      found.push(waits ? { hop, queued: true } : { hop, at: (now - hop.sent) / Math.max(1, hop.ends - hop.sent) });
    }
  }
  return found;
}

// Returns the index of the first element of an ascending list that is not before a time.
export function lowerBound(list, time, key = "queued") {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle][key] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
