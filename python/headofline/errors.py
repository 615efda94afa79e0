"""Exceptions. Their messages are those of the program: what is wrong, where, and what to do."""


class HolError(RuntimeError):
    """The program failed: it cannot be started, a run failed, or a file cannot be read."""


class UsageError(HolError, ValueError):
    """The request is invalid: an unknown key, a wrong unit, a directory without results."""
