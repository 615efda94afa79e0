// What goes on in a run at one moment: all of it follows from the times of its hops and messages.

const MS = 1e6;

// What a message does at a time, and since when it is late.
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

// For whom a message that is held back waits: the first of its stream that is not whole yet.
export function waitsFor(messages, message, now) {
  const way = message.request && now < message.request[4] ? "request" : "reply";
  return messages.find((other) => other.stream === message.stream && other.id < message.id && other.due <= now && (other[way] ? now < other[way][3] : true)) ?? null;
}

// So long a lost packet is seen to fall, in ns of the run.
export const FALL = 120 * MS;

// The hops that are under way at a time: each is in the queue, or so far on its line; one that was lost falls for a while.
export function underWay(hops, now) {
  const found = [];
  for (const hop of hops) {
    if (hop.queued > now) break;
    if (hop.lost && hop.ends <= now) {
      if (now - hop.ends < FALL) found.push({ hop, gone: (now - hop.ends) / FALL });
    } else if (hop.ends >= now) {
      const waits = hop.sent === null || now < hop.sent;
      found.push(waits ? { hop, queued: true } : { hop, at: (now - hop.sent) / Math.max(1, hop.ends - hop.sent) });
    }
  }
  return found;
}

// The first of an ascending list that is not before a time.
export function lowest(list, time, key = "queued") {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle][key] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
