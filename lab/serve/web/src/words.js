// Formats numbers and times.

export const formatInteger = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");

export function formatDuration(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "?";
  if (seconds < 1) return "a second";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const formatNumber = (value, digits = 3) => {
  if (value == null) return "–";
  if (Number.isInteger(value)) return formatInteger(value);
  if (Math.abs(value) < 1e-9) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  return size >= digits - 1 ? formatInteger(value) : value.toFixed(Math.min(6, digits - 1 - size));
};

export const STATES = { new: "new", queued: "queued", starting: "starting", active: "active", swapped_out: "swapped out", terminated: "terminated", failed: "failed", done: "done" };

const UNITS = { "": 1, "%": 1, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, bit: 1, kbit: 1e3, Mbit: 1e6, Gbit: 1e9, B: 1, kB: 1e3, MB: 1e6, KiB: 1024, MiB: 1048576, p: 1, "/s": 1 };

// Returns the value of a number with a unit, in the base unit: "1%" is 1, "10ms" is 0.01. Returns null for other text.
export function magnitude(text) {
  const match = /^(-?\d+(?:\.\d+)?(?:e-?\d+)?)\s*([A-Za-z%/]*)$/.exec(String(text).trim());
  return match && match[2] in UNITS ? Number(match[1]) * UNITS[match[2]] : null;
}
