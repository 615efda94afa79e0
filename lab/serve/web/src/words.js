// Formats numbers and times.

export const grouped = (number) => Math.round(number).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");

export function duration(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "?";
  if (seconds < 1) return "a second";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const number = (value, digits = 3) => {
  if (value == null) return "–";
  if (Number.isInteger(value)) return grouped(value);
  if (Math.abs(value) < 1e-9) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  return size >= digits - 1 ? grouped(value) : value.toFixed(Math.min(6, digits - 1 - size));
};

export const STATES = { new: "new", queued: "queued", starting: "starting", active: "active", swapped_out: "swapped out", terminated: "terminated", failed: "failed", done: "done" };

// Returns the value of a label with a unit on a numeric axis: "1%" is 1, "10ms" is 0.01; null for text that is not a number.
const UNITS = { "": 1, "%": 1, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, bit: 1, kbit: 1e3, Mbit: 1e6, Gbit: 1e9, B: 1, kB: 1e3, MB: 1e6, KiB: 1024, MiB: 1048576, p: 1, "/s": 1 };
export function magnitude(text) {
  const match = /^(-?\d+(?:\.\d+)?(?:e-?\d+)?)\s*([A-Za-z%/]*)$/.exec(String(text).trim());
  return match && match[2] in UNITS ? Number(match[1]) * UNITS[match[2]] : null;
}
