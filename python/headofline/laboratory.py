"""Runs of experiments: a file, a dictionary, or a few transports under one set of conditions."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import tomli_w
from tqdm import tqdm

from headofline import program
from headofline.errors import UsageError
from headofline.experiment import Experiment
from headofline.result import Result

#: The arguments of `compare` that an experiment has under another name.
_KEYS = {
    "count": "messages",
    "loss": "network.loss",
    "delay": "network.delay",
    "bandwidth": "network.rate",
    "rtt": "network.rtt",
    "path": "network.path",
    "request": "workload.request",
    "reply": "workload.reply",
    "queue": "network.queue",
    "workload": "workload.kind",
    "rate": "workload.rate",
    "arrivals": "workload.arrivals",
    "size": "workload.size",
}


def run(
    experiment: str | os.PathLike[str] | Experiment,
    *,
    out: str | os.PathLike[str] | None = None,
    records: bool = False,
    series: str | None = None,
    jobs: int | None = None,
    set: Mapping[str, object] | None = None,
    progress: bool = True,
) -> Result:
    """Runs an experiment: an experiment file, an ns script, or a dictionary of the same keys, whose paths are absolute.

    `out`: the directory of the results; runs that it has already are not made again. Without one a dictionary's results go when
    the `Result` does, and a file's are in `results/NAME`. `records` keeps every message, `series` how each run stands at all
    multiples of a time such as "10ms", `jobs` are runs at the same time (all cores), `set` other values by their dotted keys. Ctrl-C ends the runs.

    Raises `UsageError` for an experiment that cannot be, and `HolError` where the runs fail.
    """
    keep = [*(["--records"] if records else []), *(["--series", series] if series is not None else [])]
    if not isinstance(experiment, Mapping):
        path = Path(experiment)
        return _run(path, Path(out) if out else Path("results", path.stem), keep, jobs, set, progress)
    held = tempfile.TemporaryDirectory(prefix="headofline-")
    path = Path(held.name, "experiment.toml")
    path.write_text(_toml(experiment), encoding="utf-8")
    result = _run(path, Path(out) if out else Path(held.name, "results"), keep, jobs, set, progress)
    weakref.finalize(result, held.cleanup)
    return result


def compare(
    *transports: str,
    out: str | os.PathLike[str] | None = None,
    records: bool = False,
    series: str | None = None,
    jobs: int | None = None,
    progress: bool = True,
    set: Mapping[str, object] | None = None,
    world: str | None = None,
    seed: int | None = None,
    repetitions: int | str | None = None,
    **conditions: object,
) -> Result:
    """Compares transports under one set of conditions, or over several: `loss=["0%", "1%"]` sweeps.

    Transports are those of `hol list`, such as "tcp" or "sctp:streams=8"; the others are compared with the first. Conditions are those of
    `hol compare`: `path`, `loss`, `delay`, `rtt`, `bandwidth`, `queue`, `workload`, `rate`, `arrivals`, `request`, `reply`, `size`,
    `count`. `set` has any other dotted key of an experiment, as {"network.jitter": "2ms"}, where a list sweeps as well.
    """
    experiment = conditions_of(transports, conditions, set or {})
    experiment["title"] = " and ".join(transports)
    for key, value in {"world": world, "seed": seed, "repetitions": repetitions}.items():
        if value is not None:
            experiment[key] = value
    return run(cast(Experiment, experiment), out=out, records=records, series=series, jobs=jobs, progress=progress)


def conditions_of(
    transports: Sequence[str], conditions: Mapping[str, object], other: Mapping[str, object]
) -> dict[str, Any]:
    """The experiment that `compare` runs."""
    if not transports:
        raise UsageError('compare what? hol.compare("tcp", "sctp:streams=8", loss="1%")')
    if unknown := sorted(conditions.keys() - _KEYS.keys()):
        raise UsageError(f"{unknown[0]} is not a condition; there are {', '.join(_KEYS)}, and set={{…}} for any other key")
    experiment: dict[str, Any] = {"transports": list(transports), "workload": {"kind": "rpc"}}
    axes: dict[str, Any] = {}
    keys = {_KEYS[name]: value for name, value in conditions.items()} | dict(other)
    for key, value in keys.items():
        if isinstance(value, (list, tuple)):
            axes[key] = list(value)
        else:
            _put(experiment, key.split("."), value)
    if axes:
        experiment["sweep"] = axes
    return experiment


def _put(table: dict[str, Any], path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        table = table.setdefault(name, {})
    table[path[-1]] = value


def _toml(experiment: Mapping[str, Any]) -> str:
    try:
        return tomli_w.dumps(experiment)
    except TypeError as error:
        raise UsageError(f"an experiment holds text, numbers, lists and dictionaries: {error}") from error


def _run(
    path: Path, out: Path, keep: Sequence[str], jobs: int | None, set: Mapping[str, object] | None, progress: bool
) -> Result:
    arguments: list[str | Path] = ["run", path, "--out", out, "--progress", "json", "--with-parent", str(os.getpid())]
    arguments.extend(keep)
    if jobs is not None:
        arguments += ["--jobs", str(jobs)]
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={value}"]
    # What is over at once needs no bar.
    with tqdm(total=1.0, disable=not progress, delay=1.0, leave=False, bar_format="{bar} {percentage:.0f} %{postfix}") as bar:
        program.call(arguments, _telling(bar))
    return Result(out)


def _telling(bar: tqdm[Any]) -> Callable[[dict[str, Any]], None]:
    def told(progress: dict[str, Any]) -> None:
        bar.set_postfix_str(how_far(progress), refresh=False)
        bar.update(progress["share"] - bar.n)

    return told


def how_far(progress: Mapping[str, Any]) -> str:
    """A report of progress, in words."""
    runs = f"{progress['runs']} of {progress['runs_wanted']} runs"
    left = progress["left"]
    # At first nobody knows.
    return runs if left is None else f"{runs}, about {left:.0f} s left"
