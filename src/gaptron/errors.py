"""The errors that gaptron raises on purpose.

    GaptronError
    ├── InputError      (ValueError)   data that cannot be played: NaN, wrong width, unknown label, ...
    │   └── StreamError                a file that cannot be read; names the file and the line
    ├── SettingError    (ValueError)   an unknown algorithm or setting, a missing or impossible value
    ├── DecisionError   (ValueError)   feedback given twice, to another learner, or of another kind
    ├── ModelFileError  (ValueError)   a learner that cannot be written to a file or read from it; names the file
    ├── NoBoundError    (ValueError)   no theorem covers this run; the message says why
    └── InUseError      (RuntimeError) a learner that another thread is using

A call that raises one of these has changed nothing.
"""

import os


class GaptronError(Exception):
    """Any error gaptron raises on purpose."""


class InputError(GaptronError, ValueError):
    """Data that cannot be played."""


class StreamError(InputError):
    """A file that cannot be read as a stream.

    Args:
        source: the name of the file.
        problem: what is wrong.
        line: the line, if there is one.
    """

    def __init__(self, source: str, problem: str, line: int | None = None) -> None:
        self.source, self.line = source, line
        place = source if line is None else f"{source}, line {line}"
        super().__init__(f"{place}: {problem}")


class SettingError(GaptronError, ValueError):
    """An unknown algorithm or setting, or a value that is missing or impossible."""


class DecisionError(GaptronError, ValueError):
    """Feedback on a decision that was given twice, to another learner, or of another kind."""


class ModelFileError(GaptronError, ValueError):
    """A learner that cannot be written to a file or read from it.

    Args:
        path: the file.
        problem: what is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path = os.fspath(path)
        super().__init__(f"{self.path}: {problem}")


class NoBoundError(GaptronError, ValueError):
    """No theorem covers this run."""


class OutlierWarning(UserWarning):
    """An example far longer than all before it: steps that fit it are too small for the others."""


class InUseError(GaptronError, RuntimeError):
    """A learner that another thread is using."""
