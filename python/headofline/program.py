"""The program `hol`: where it is, and how it is run."""

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

#: How long a program that was asked to end may take for it, in seconds.
_PATIENCE = 20.0

#: It begins each line of the program's messages that says what is wrong.
_ERROR = "error: "


def binary() -> Path:
    """The program: `$HOL_BINARY`, the one that came with this package, or the first on the PATH."""
    name = "hol.exe" if sys.platform == "win32" else "hol"
    if chosen := os.environ.get("HOL_BINARY"):
        return Path(chosen)
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    for directory in schemes:
        if (here := Path(directory, name)).is_file():
            return here
    if on_path := shutil.which(name):
        return Path(on_path)
    raise HolError(f"there is no `{name}` in {' or '.join(schemes)}, nor on the PATH; pip install headofline, or set HOL_BINARY")


def call(arguments: Sequence[str | Path], told: Callable[[dict[str, Any]], None] | None = None) -> str:
    """Runs the program, hands on each report of its progress, and returns what it printed.

    It ends with this process, and with Ctrl-C: what it has done by then is kept, and the same call goes on from there.
    """
    command = [str(binary()), *map(str, arguments)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        # In a session of its own: Ctrl-C in a terminal reaches this process, which asks the program to end, once.
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
            raise HolError(f"{command[0]}: {error.strerror}; HOL_BINARY says which program is run") from error
        said = _attend(running, told)
        printed.seek(0)
        text = printed.read()
    if running.returncode == 0:
        return text
    problem = said.removeprefix(_ERROR).strip() or f"{command[0]} ended with {running.returncode}"
    raise UsageError(problem) if running.returncode == 2 else HolError(problem)


def _attend(running: subprocess.Popen[str], told: Callable[[dict[str, Any]], None] | None) -> str:
    """Reads what it says until it has ended. What is not progress is what it has to say."""
    said: list[str] = []
    assert running.stderr is not None
    try:
        with running.stderr:
            for line in running.stderr:
                progress = _progress(line)
                if progress is None:
                    said.append(line)
                elif told is not None:
                    told(progress)
        running.wait()
    except BaseException:
        _end(running)
        raise
    return "".join(said)


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
    """As Ctrl-C ends it: what is done stays."""
    running.send_signal(signal.SIGINT)
    try:
        running.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
