"""The package and the program: the one that is installed with it, or the one of HOL_BINARY."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import headofline as hol
import nbclient
import nbformat
import pandas
import polars
import pyarrow.compute
import pytest
from headofline.laboratory import conditions_of, describe_progress, setting_of

EXPERIMENT: hol.Experiment = {
    "transports": ["tcp", {"spec": "sctp:streams=8", "label": "SCTP-8"}],
    "messages": 400,
    "repetitions": 4,
    "network": {"loss": "2%", "delay": "5ms"},
    "workload": {"kind": "echo", "rate": "200/s", "size": "256B"},
    "sweep": {"network.loss": ["0%", "2%"]},
}


@pytest.fixture(scope="module")
def result() -> hol.Result:
    return hol.run(EXPERIMENT, records=True, progress=False)


def test_a_dictionary_is_an_experiment(result: hol.Result) -> None:
    assert result.points.num_rows == 4
    assert result.points["label"].to_pylist() == ["tcp", "tcp", "SCTP-8", "SCTP-8"]
    assert len(result.runs) == 16
    assert "4 points, 16 runs" in repr(result)


def test_records_are_the_same_in_pandas_polars_and_duckdb(result: hol.Result) -> None:
    records = result.records
    measured = pyarrow.compute.field("flow") == 0
    table = records.to_table(filter=measured)
    assert table.num_rows == 4 * 400
    frame = table.to_pandas()
    in_pandas = (frame.reply_delivered_ns - frame.scheduled_ns).groupby(frame.transport).mean()
    in_polars = (
        polars.scan_pyarrow_dataset(records)
        .filter(polars.col("flow") == 0)
        .group_by("transport")
        .agg((polars.col("reply_delivered_ns") - polars.col("scheduled_ns")).mean().alias("mean"))
        .collect()
    )
    in_duckdb = duckdb.sql(
        "select transport, avg(reply_delivered_ns - scheduled_ns) from records where flow = 0 group by all"
    ).fetchall()
    for transport, mean in in_duckdb:
        assert in_pandas[transport] == pytest.approx(mean)
        assert in_polars.filter(polars.col("transport") == transport)["mean"][0] == pytest.approx(mean)
    # And what the program itself says.
    points = result.points.to_pandas()
    assert isinstance(points, pandas.DataFrame)
    of_tcp = points[points.label == "tcp"].mean_ms.mean()
    assert in_pandas["tcp"] / 1e6 == pytest.approx(of_tcp)


def test_a_notebook_shows_the_report(result: hol.Result) -> None:
    page = result._repr_html_()
    assert page.startswith("<iframe sandbox=") and "&lt;svg" in page and "SCTP-8" in page


def test_the_same_call_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    first = hol.run(EXPERIMENT, out=tmp_path / "out", progress=False)
    journal = (tmp_path / "out" / "runs.jsonl").read_bytes()
    again = hol.run(EXPERIMENT, out=tmp_path / "out", progress=False)
    assert (tmp_path / "out" / "runs.jsonl").read_bytes() == journal
    assert hol.open(tmp_path / "out").points == again.points == first.points


def test_compare_is_hol_compare() -> None:
    result = hol.compare("tcp", "sctp:streams=8", loss=["0%", "1%"], count=300, repetitions=3, progress=False)
    same = subprocess.run(
        [hol.binary(), "compare", "tcp", "sctp:streams=8", "--loss", "1%", "--count", "300", "--repetitions", "3", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [json.loads(line) for line in same.stdout.splitlines()]
    by_digest = {row["digest"] for row in result.points.to_pylist() if row["network.loss"] == "1%"}
    assert {line["digest"] for line in lines if "digest" in line} == by_digest


def test_progress_is_told_before_anybody_knows_how_long_it_takes() -> None:
    progress = {"runs": 0, "runs_wanted": 80, "share": 0.0, "left": None}
    assert describe_progress(progress) == "0 of 80 runs"
    assert describe_progress(progress | {"left": 12.4}) == "0 of 80 runs, about 12 s left"


def test_conditions_become_keys_and_lists_become_axes() -> None:
    experiment = conditions_of(
        ["tcp"], {"loss": ["0%", "1%"], "bandwidth": "10Mbit", "size": "1kB", "workload": "echo"}, {"network.jitter": "2ms"}
    )
    assert experiment == {
        "transports": ["tcp"],
        "workload": {"kind": "echo", "size": "1kB"},
        "network": {"rate": "10Mbit", "jitter": "2ms"},
        "sweep": {"network.loss": ["0%", "1%"]},
    }


def test_values_of_set_are_toml() -> None:
    assert [setting_of(value) for value in ("1%", 3, 0.5, True)] == ["1%", "3", "0.5", "true"]
    assert setting_of({"codel": {"ecn": True}}) == '{"codel" = {"ecn" = true}}'
    assert setting_of(["0%", {"drop": [3]}]) == '["0%", {"drop" = [3]}]'
    result = hol.run(EXPERIMENT, set={"network.discipline": {"codel": {"ecn": True}}, "messages": 40}, progress=False)
    assert result.points.num_rows == 4


TYPED = """
import headofline as hol
experiment: hol.Experiment = {"transports": ["tcp"], "network": {"rate": "1Mbit", "loss": {"drop": [3]}}}
hol.run(experiment)
"""


def test_a_type_checker_knows_experiments(tmp_path: Path) -> None:
    def checked(text: str) -> str:
        (tmp_path / "typed.py").write_text(text)
        command = [sys.executable, "-m", "mypy", "--strict", "typed.py"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout

    assert "no issues" in checked(TYPED)
    assert 'Extra key "rat"' in checked(TYPED.replace("rate", "rat"))
    assert "ExplicitLoss" in checked(TYPED.replace("[3]", '["3"]'))


def test_the_tutorial_runs() -> None:
    notebook = nbformat.read(Path(__file__).parent.parent / "tutorial.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) for output in shown)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"transports": ["tcp"], "network": {"rat": "1Mbit"}}, "rat"),
        ({"transports": ["tcp"], "network": {"rate": "1 Mbut"}}, "Mbut"),
        ({"transports": ["tpc"]}, "tpc"),
        ({}, "transports"),
        ({"transports": ["tcp"], "messages": None}, "NoneType"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_place(wrong: hol.Experiment, said: str) -> None:
    with pytest.raises(hol.UsageError) as error:
        hol.run(wrong, progress=False)
    assert said in str(error.value), error.value


def test_other_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(hol.UsageError, match="name a result directory of `hol run`"):
        hol.open(tmp_path)
    with pytest.raises(hol.HolError, match="missing.toml: cannot read: No such file"):
        hol.run(tmp_path / "missing.toml", progress=False)
    with pytest.raises(hol.UsageError, match="lost is not a condition; use count, loss"):
        hol.compare("tcp", lost="1%")
    with pytest.raises(hol.UsageError, match="no transports; name them"):
        hol.compare()
    (tmp_path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(hol.UsageError, match="layout 99 is not supported"):
        hol.open(tmp_path)
    monkeypatch.setenv("HOL_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(hol.HolError, match="check HOL_BINARY, which selects the program"):
        hol.run(EXPERIMENT, progress=False)


def test_series_tell_how_runs_stand_over_time() -> None:
    result = hol.compare("tcp", "sctp", series="5ms", progress=False, repetitions=1, count=200)
    table = result.series.to_table(filter=pyarrow.dataset.field("subject") == "sender").to_pandas()
    assert set(table["transport"]) == {"tcp", "sctp"}
    assert (table["time_ns"] % 5_000_000 == 0).all()
    assert (table["cwnd_octets"] > 0).all()
    with pytest.raises(hol.UsageError, match='series="10ms"'):
        _ = hol.compare("tcp", progress=False, repetitions=1, count=20).series


def test_without_records_the_cure_is_said() -> None:
    small: hol.Experiment = {"transports": ["tcp"], "messages": 10, "repetitions": 1}
    with pytest.raises(hol.UsageError, match="records=True"):
        _ = hol.run(small, progress=False).records


LONG = """
import headofline as hol, os, sys
hol.run({"transports": ["tcp"], "messages": 400_000_000, "repetitions": 4000}, out=sys.argv[1], progress=False)
"""


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_runs_end_with_who_asked_for_them(tmp_path: Path, by: signal.Signals) -> None:
    out = tmp_path / "out"
    asking = subprocess.Popen([sys.executable, "-c", LONG, out], stderr=subprocess.PIPE, text=True)
    journal, end = out / "runs.jsonl", time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size) and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(asking.pid, by)
    _, said = asking.communicate(timeout=60)
    assert asking.returncode == -by and ("KeyboardInterrupt" in said) == (by == signal.SIGINT), said
    while _is_run_into(out) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _is_run_into(out)
    assert journal.stat().st_size, "what is done is kept"


def _is_run_into(out: Path) -> bool:
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--with-parent" in words and str(out).encode() in words:
            return True
    return False
