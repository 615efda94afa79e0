"""Finds and runs the program `hol`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headofline.errors import HolError, UsageError

#: Seconds that the program may take to end after SIGINT, before it is killed.
_END_TIMEOUT = 20.0

#: Prefix of the program's error messages.
_ERROR = "error: "


def binary() -> Path:
    """Returns the path of the program: `$HOL_BINARY`, the program installed with this package, or the first on the PATH.

    Raises `HolError` if there is none.
    """
    name = "hol.exe" if sys.platform == "win32" else "hol"
    if chosen := os.environ.get("HOL_BINARY"):
        return Path(chosen)
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    for directory in schemes:
        if (here := Path(directory, name)).is_file():
            return here
    if on_path := shutil.which(name):
        return Path(on_path)
    raise HolError(f"`{name}` is neither in {' or '.join(schemes)} nor on the PATH; install it, or set HOL_BINARY to its path")


def call(arguments: Sequence[str | Path], on_progress: Callable[[dict[str, Any]], None] | None = None) -> str:
    """Runs the program, passes each of its progress reports to `on_progress`, and returns its standard output.

    Ctrl-C ends the program, which keeps the completed runs; the same call continues. Raises `UsageError` if its exit code is 2, and
    `HolError` for any other failure.
    """
    command = [str(binary()), *map(str, arguments)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        # The program is in a session of its own, so that Ctrl-C in a terminal reaches only this process, which then sends one SIGINT.
        try:
            running = subprocess.Popen(
                command,
                stdout=printed,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise HolError(f"{command[0]}: {error.strerror}; check HOL_BINARY, which selects the program") from error
        messages = _read_messages(running, on_progress)
        printed.seek(0)
        text = printed.read()
    if running.returncode == 0:
        return text
    problem = messages.removeprefix(_ERROR).strip() or f"{command[0]} failed with exit code {running.returncode}"
    raise UsageError(problem) if running.returncode == 2 else HolError(problem)


def _read_messages(running: subprocess.Popen[str], on_progress: Callable[[dict[str, Any]], None] | None) -> str:
    """Reads standard error until the program has ended, and returns its lines other than progress reports."""
    messages: list[str] = []
    assert running.stderr is not None
    try:
        with running.stderr:
            for line in running.stderr:
                progress = _progress(line)
                if progress is None:
                    messages.append(line)
                elif on_progress is not None:
                    on_progress(progress)
        running.wait()
    except BaseException:
        _end(running)
        raise
    return "".join(messages)


def _progress(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        object_ = json.loads(line)
    except ValueError:
        return None
    progress = object_.get("progress") if isinstance(object_, dict) else None
    return progress if isinstance(progress, dict) else None


def _end(running: subprocess.Popen[str]) -> None:
    """Ends the program like Ctrl-C, so that it keeps the completed runs."""
    running.send_signal(signal.SIGINT)
    try:
        running.wait(_END_TIMEOUT)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
