"""Runs experiments: a file, a dictionary, or a comparison of transports under given conditions."""

from __future__ import annotations

import json
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

#: The conditions of `compare`, and their keys in an experiment file.
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
    """Runs an experiment: an experiment file, an ns script, or a dictionary with the keys of an experiment file.

    Paths in a dictionary have to be absolute.

    - `out`: the result directory. Completed runs in it are not repeated. Default: `results/NAME` for a file; for a dictionary a
      temporary directory, which is deleted with the `Result`.
    - `records`: whether to keep the records of all messages.
    - `series`: the interval of a time series of each run, such as "10ms". Default: none.
    - `jobs`: the number of parallel runs. Default: all cores.
    - `set`: values of other keys, by dotted key.
    - `progress`: whether to show a progress bar.

    Ctrl-C ends the runs; the next call with the same `out` continues. Raises `UsageError` for an invalid experiment, and `HolError`
    if runs fail.
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
    """Compares transports under given conditions; a list of values, as in `loss=["0%", "1%"]`, is an axis of a sweep.

    `hol list` shows the transports, such as "tcp" or "sctp:streams=8"; the others are compared with the first. The conditions are options
    of `hol compare`: `path`, `loss`, `delay`, `rtt`, `bandwidth`, `queue`, `workload`, `rate`, `arrivals`, `request`, `reply`, `size`,
    `count`. `set` has values for any other dotted key of an experiment, as in {"network.jitter": "2ms"}; a list is an axis here, too. The
    other arguments are those of `run`.
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
    """Returns the experiment that `compare` runs."""
    if not transports:
        raise UsageError('no transports; name them, as in hol.compare("tcp", "sctp:streams=8", loss="1%")')
    if unknown := sorted(conditions.keys() - _KEYS.keys()):
        raise UsageError(f"{unknown[0]} is not a condition; use {', '.join(_KEYS)}, or set={{…}} for any other key")
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
        raise UsageError(f"{error}; an experiment may contain only text, numbers, booleans, lists and dictionaries") from error


def _run(
    path: Path, out: Path, keep: Sequence[str], jobs: int | None, set: Mapping[str, object] | None, progress: bool
) -> Result:
    arguments: list[str | Path] = ["run", path, "--out", out, "--progress", "json", "--with-parent", str(os.getpid())]
    arguments.extend(keep)
    if jobs is not None:
        arguments += ["--jobs", str(jobs)]
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={setting_of(value)}"]
    # The bar appears after a second: shorter experiments need none.
    with tqdm(total=1.0, disable=not progress, delay=1.0, leave=False, bar_format="{bar} {percentage:.0f} %{postfix}") as bar:
        program.call(arguments, _updater(bar))
    return Result(out)


def setting_of(value: object) -> str:
    """Returns a value as `hol run --set` takes it: text as it is, anything else as TOML."""
    return value if isinstance(value, str) else _toml_value(value)


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A string of JSON is one of TOML.
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_value(str(key))} = {_toml_value(own)}" for key, own in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return str(value)


def _updater(bar: tqdm[Any]) -> Callable[[dict[str, Any]], None]:
    def update(progress: dict[str, Any]) -> None:
        bar.set_postfix_str(describe_progress(progress), refresh=False)
        bar.update(progress["share"] - bar.n)

    return update


def describe_progress(progress: Mapping[str, Any]) -> str:
    """Describes a progress report of the program."""
    runs = f"{progress['runs']} of {progress['runs_wanted']} runs"
    left = progress["left"]
    # At first there is no estimate.
    return runs if left is None else f"{runs}, about {left:.0f} s left"
