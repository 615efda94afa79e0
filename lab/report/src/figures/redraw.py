SIZES = {"one column": 3.5, "two columns": 7.16}  # inches
LETTERS = 8  # points
MARKERS = {"disc": "o", "ring": "o", "square": "s", "diamond": "D", "up": "^", "down": "v", "cross": "x"}


def panels(path):
    """Returns the rows of the file by panel and series, in their order."""
    found = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in list(csv.reader(file))[1:]:
            found.setdefault(row[0], {}).setdefault(row[1], []).append(row[2:])
    return found


def number(text):
    """Converts a cell to a number; an empty cell is unknown (NaN)."""
    return float(text) if text else float("nan")


def draw_series(axes, label, rows):
    """Draws a curve with its intervals; rows are x, y, low, high and counts, or x and y."""
    colour, marker, dashes = FIGURE["looks"][label]
    names = FIGURE["x_scale"] == "names"
    x = [row[0] if names else number(row[0]) / FIGURE["x_unit"] for row in rows]
    y = [number(row[1]) / FIGURE["y_unit"] for row in rows]
    line = (0, dashes) if dashes else "-"
    hollow = {"markerfacecolor": "white"} if marker == "ring" else {}
    style = {"color": colour, "label": label, "linewidth": 1}
    if FIGURE["kind"] == "courses":
        axes.plot(x, y, ".", markersize=2, **style)
        return
    low, high = ([number(row[at]) / FIGURE["y_unit"] for row in rows] for at in (2, 3))
    if FIGURE["kind"] == "ccdf":
        axes.step(x, y, where="post", linestyle=line, **style)
        axes.fill_between(x, low, high, step="post", color=colour, alpha=0.12, linewidth=0)
        return
    # An interval of one repetition is unknown, and has no bar.
    ends = [[a - b if a - b >= 0 else 0 for a, b in pairs] for pairs in (zip(y, low), zip(high, y))]
    line = "none" if names else line
    axes.errorbar(x, y, yerr=ends, linestyle=line, marker=MARKERS[marker], markersize=4, capsize=2, elinewidth=0.7, **hollow, **style)


def scale_axes(axes):
    """Gives the axes the scales of the report, with plain numbers."""
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        scale, low, high = (FIGURE[name + part] for part in ("_scale", "_min", "_max"))
        if scale == "names":
            continue
        if scale == "from zero":
            axes.set_xscale("symlog", linthresh=low, linscale=0.3)
            powers = [10.0**power for power in range(-9, 10)]
            axis.set_ticks([0] + [power for power in powers if low <= power <= high])
            axes.set_xlim(-0.3 * low, high)
        else:
            getattr(axes, f"set_{name}scale")(scale)
            getattr(axes, f"set_{name}lim")(low, high)
        if scale == "log":
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(ticker.NullFormatter())
    axes.grid(True, linewidth=0.4, color="0.9")
    axes.set_axisbelow(True)


def draw(source, width):
    """Draws the whole figure with a width in inches."""
    found = panels(source)
    columns = 1 if width < 5 else min(3, len(found))
    lines = -(-len(found) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(width, 2.3 * lines + 0.4), sharey=True, squeeze=False, layout="constrained")
    for axes in grid.flat[len(found):]:
        axes.set_visible(False)
    for axes, (title, series) in zip(grid.flat, found.items()):
        for label, rows in series.items():
            draw_series(axes, label, rows)
        scale_axes(axes)
        axes.set_title(title, fontsize=LETTERS)
    figure.supxlabel(FIGURE["x_label"], fontsize=LETTERS)
    figure.supylabel(FIGURE["y_label"], fontsize=LETTERS)
    handles = {}
    for axes in grid.flat:
        handles.update(reversed(pair) for pair in zip(*axes.get_legend_handles_labels()))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=2 if width < 5 else 4, frameon=False)
    return figure


# TrueType fonts (type 42) keep the text of the figures searchable.
plt.rcParams.update({"font.size": LETTERS, "legend.fontsize": LETTERS - 1, "pdf.fonttype": 42, "ps.fonttype": 42})
here = Path(__file__).resolve()
for name, width in SIZES.items():
    figure = draw(here.with_suffix(".csv"), width)
    target = here.with_name(f"{here.stem}-{name.replace(' ', '-')}")
    figure.savefig(target.with_suffix(".pdf"))
    figure.savefig(target.with_suffix(".png"), dpi=200)
    print(target.with_suffix(".pdf"))
