// The swept keys of points, as in points.json.

const SETTING = /^(network|workload|hosts|background|onward|program)\./;
const OPTION = /^(tcp|sctp|quic|mptcp|udp|unix)\./;
const OTHERS = ["messages", "seed", "world", "timeline"];

// Returns the columns of the points that are axes: dotted keys with more than one value. Points of other transports lack an option.
export function axes(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => SETTING.test(key) || OPTION.test(key) || OTHERS.includes(key));
  // A value with a unit has its number in another column: network.loss_percent in addition to network.loss.
  const isNumberOf = (key) => keys.some((other) => key.startsWith(`${other}_`));
  return keys.filter((key) => !isNumberOf(key) && valuesOf(rows, key).length > 1);
}

// Returns the values of a key, in the order of the points.
export function valuesOf(rows, key) {
  const having = OPTION.test(key) ? rows.filter((row) => row[key] != null) : rows;
  return [...new Set(having.map((row) => row[key]))];
}

// Returns whether a point is at a value of a key: an option of another transport has no effect on it, so it is at all values.
export function isAt(row, key, value) {
  return row[key] === value || (OPTION.test(key) && row[key] == null);
}
