"""The data directory: a folder of data sets that are opened by name.

The environment variable GAPTRON_DATA contains its path. Its META.json has for each set: `file`, the number of features
`d`, and the `kind` of its examples, "dense" or "sparse".
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
    """A data set of the directory."""

    name: str
    path: str
    n_features: int
    dense: bool

    def convert(self, stream: Stream | Chunks) -> Stream | Chunks:
        """Return the stream under its name, with dense examples if the set is dense, whatever its file format."""
        if self.dense and isinstance(stream, Stream) and sparse.issparse(stream.X):
            stream = replace(stream, rows=stream.rows._replace(X=stream.X.toarray()))
        return replace(stream, name=self.name)


def find(name: str) -> Entry | None:
    """Look up a name; None if there is no directory, no such name, or a file of that name."""
    folder = os.environ.get(DIRECTORY)
    if not folder or os.path.exists(name):
        return None
    index = Path(folder) / "META.json"
    try:
        card = json.loads(index.read_text(encoding="utf-8")).get(name)
        return card and Entry(name, str(Path(folder) / card["file"]), int(card["d"]), card["kind"] == "dense")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StreamError(
            str(index), f"is not the index of a data directory; set {DIRECTORY} to the path of one ({error})"
        ) from None
