"""What goes wrong, in the program's own words: the place, and the cure."""


class HolError(RuntimeError):
    """The program could not do what was asked for: the message is what it said."""


class UsageError(HolError, ValueError):
    """What was asked for cannot be: an unknown key, a wrong unit, a directory without results."""
