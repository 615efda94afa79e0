// The axes of an experiment, and the point of each combination of their values. Values are given by their indices.

export class Axes {
  constructor({ axes, points }) {
    this.list = axes;
    this.first = points[0];
    this.points = new Map(points.map((point) => [point.values.join(), point]));
  }

  // Returns the point with these values of the axes; undefined if the experiment has none.
  point(values) {
    return this.points.get(values.join());
  }

  // Returns whether there is a point with these values, but with `value` for one axis.
  has(values, axis, value) {
    return this.point(values.with(axis, value)) !== undefined;
  }

  // Describes the values: "transport tcp, RTT 40ms".
  describe(values) {
    return this.list.map(({ name, values: own }, axis) => `${name} ${own[values[axis]].text}`).join(", ");
  }

  // Returns the point with the same values as a point of another plan, or the first point if there is none.
  pointLike(other, values) {
    const same = this.list.map(({ keys, values: own }) => {
      const axis = other.list.findIndex((theirs) => theirs.keys.join() === keys.join());
      const text = other.list[axis]?.values[values[axis]].text;
      return own.findIndex((value) => value.text === text);
    });
    return this.point(same) ?? this.first;
  }
}
