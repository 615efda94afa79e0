"""Result directories: their tables, and their report."""

from __future__ import annotations

import html
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.dataset

from headofline.errors import HolError, UsageError

#: Versions of the layout of a result directory that this package reads: `format` in its manifest.
_FORMATS = (3, 4)


class Result:
    """The results of `hol run`. Tables are Arrow tables: use `to_pandas()` or `polars.from_arrow`, or query them by name in DuckDB."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        #: The result directory.
        self.directory = Path(directory)
        path = self.directory / "manifest.json"
        try:
            self.manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; name a result directory of `hol run`") from error
        except ValueError as error:
            raise HolError(f"{path}: {error}; run the experiment again into a new directory") from error
        if (layout := self.manifest.get("format")) not in _FORMATS:
            raise UsageError(f"{path}: layout {layout} is not supported, only {_FORMATS}; use the version of this package that wrote it")

    @cached_property
    def points(self) -> pyarrow.Table:
        """A row for each point: the transport, swept values, means with 95 % confidence intervals, quantiles, losses."""
        path = self.directory / "points.json"
        try:
            return pyarrow.Table.from_pylist(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise HolError(f"{path}: {error.strerror}; `hol report {self.directory}` writes it again from the runs") from error

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """An entry for each run, one repetition of a point: counts, the distribution, the digest. Times are integers in ns."""
        with (self.directory / "runs.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    @cached_property
    def records(self) -> pyarrow.dataset.Dataset:
        """A row for each message, with its times in ns since the start of the run; needs `records=True`.

        The files are read only when a query needs them: `polars.scan_pyarrow_dataset`, `records.to_table(columns=[…])`.
        """
        directory = self.directory / "records"
        if not directory.is_dir():
            raise UsageError(f"{directory}: not found; run the experiment with records=True")
        return pyarrow.dataset.dataset(directory, format="parquet")

    @cached_property
    def series(self) -> pyarrow.dataset.Dataset:
        """The states of senders, queues and flows at all multiples of an interval; needs `series="10ms"`.

        `time_ns` counts from the start of the run. The column `subject` is "sender" (windows, round-trip time, octets in flight),
        "queue" or "flow" (delivered octets).
        """
        directory = self.directory / "series"
        if not directory.is_dir():
            raise UsageError(f'{directory}: not found; run the experiment with series="10ms"')
        return pyarrow.dataset.dataset(directory, format="parquet")

    @property
    def report(self) -> Path:
        """The path of the report, an HTML page that needs no other file."""
        return self.directory / "report.html"

    def __repr__(self) -> str:
        return f"<Result {self.directory}: {self.points.num_rows} points, {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        """Returns the report, for a notebook."""
        page = html.escape(self.report.read_text(encoding="utf-8"), quote=True)
        return (
            '<iframe sandbox="allow-scripts" title="Report" loading="lazy" '
            f'style="width:100%;height:42rem;border:0" srcdoc="{page}"></iframe>'
        )


def open(directory: str | os.PathLike[str]) -> Result:
    """Opens the results of an earlier run of this package or of `hol`. Raises `UsageError` if there are none."""
    return Result(directory)
