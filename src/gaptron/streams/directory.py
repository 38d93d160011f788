"""The data directory: a folder of data sets, each opened by its name.

GAPTRON_DATA names the folder. Its META.json says of each set: `file`, the width `d`, and the `kind` of its rows,
"dense" or "sparse".
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from scipy import sparse

from gaptron.errors import StreamError
from gaptron.streams.stream import Chunks, Stream

DIRECTORY = "GAPTRON_DATA"


class Entry(NamedTuple):
    """One data set of the directory."""

    name: str
    path: str
    n_features: int
    dense: bool

    def fitted(self, stream: Stream | Chunks) -> Stream | Chunks:
        """The stream under its name, and written out if its rows are dense whatever the format of the file."""
        if self.dense and isinstance(stream, Stream) and sparse.issparse(stream.X):
            stream = replace(stream, rows=stream.rows._replace(X=stream.X.toarray()))
        return replace(stream, name=self.name)


def find(name: str) -> Entry | None:
    """What the directory has under this name; None if there is no directory, no such name, or a file of that name."""
    folder = os.environ.get(DIRECTORY)
    if not folder or os.path.exists(name):
        return None
    cards = Path(folder) / "META.json"
    try:
        card = json.loads(cards.read_text(encoding="utf-8")).get(name)
        return card and Entry(name, str(Path(folder) / card["file"]), int(card["d"]), card["kind"] == "dense")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StreamError(
            str(cards), f"is not the list of a data directory, which {DIRECTORY} should name ({error})"
        ) from None
