"""A directory of results, as tables and as its report."""

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

#: The layouts of a directory that are understood here: `format` in its manifest.
_FORMATS = (3, 4)


class Result:
    """What `hol run` made. Tables are Arrow's: `to_pandas()`, `polars.from_arrow`, and DuckDB queries them by their name."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        #: Where the results are.
        self.directory = Path(directory)
        path = self.directory / "manifest.json"
        try:
            self.manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; is it a directory that `hol run` filled?") from error
        except ValueError as error:
            raise HolError(f"{path}: {error}; run the experiment again into a new directory") from error
        if (layout := self.manifest.get("format")) not in _FORMATS:
            raise UsageError(f"{path}: a layout {layout}; this package reads {_FORMATS}, another version of it that one")

    @cached_property
    def points(self) -> pyarrow.Table:
        """A row for each point: the transport, swept values, means with their 95 % intervals, quantiles, losses."""
        path = self.directory / "points.json"
        try:
            return pyarrow.Table.from_pylist(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise HolError(f"{path}: {error.strerror}; `hol report {self.directory}` makes it of the runs") from error

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """A repetition of a point each: counts, the distribution, its digest. Times are whole numbers of ns."""
        with (self.directory / "runs.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    @cached_property
    def records(self) -> pyarrow.dataset.Dataset:
        """A row for each message, with its times in ns since the start of the run: what `records=True` kept.

        Nothing is read before it is asked for: `polars.scan_pyarrow_dataset`, `records.to_table(columns=[…])`.
        """
        directory = self.directory / "records"
        if not directory.is_dir():
            raise UsageError(f"{directory} is not there; run it with records=True")
        return pyarrow.dataset.dataset(directory, format="parquet")

    @cached_property
    def series(self) -> pyarrow.dataset.Dataset:
        """How senders, queues and flows stood at the multiples of a time, in ns since the start of the run: what `series="10ms"` kept.

        A row is of a `subject`: "sender" (cwnd, ssthresh, round trip, what is in flight), "queue" or "flow" (what was delivered).
        """
        directory = self.directory / "series"
        if not directory.is_dir():
            raise UsageError(f'{directory} is not there; run it with series="10ms"')
        return pyarrow.dataset.dataset(directory, format="parquet")

    @property
    def report(self) -> Path:
        """The report, a page that stands alone."""
        return self.directory / "report.html"

    def __repr__(self) -> str:
        return f"<Result {self.directory}: {self.points.num_rows} points, {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        """The report, in a notebook."""
        page = html.escape(self.report.read_text(encoding="utf-8"), quote=True)
        return (
            '<iframe sandbox="allow-scripts" title="Report" loading="lazy" '
            f'style="width:100%;height:42rem;border:0" srcdoc="{page}"></iframe>'
        )


def open(directory: str | os.PathLike[str]) -> Result:
    """The results of an earlier run, by whatever made them."""
    return Result(directory)
