"""The real sets of the shared data folder, read through the front door."""

import json

import numpy as np
import pytest
from scipy import sparse

from gaptron.streams import open_stream
from tests.conftest import shared_data
from tests.streams.writers import dense


@pytest.mark.parametrize("name", ["glass", "letter", "reuters_r8", "dna", "soybean", "yeast", "banking77"])
def test_real_sets_have_the_size_they_claim(name):
    folder = shared_data()
    card = json.loads((folder / "META.json").read_text())[name]
    stream = open_stream(folder / card["file"], n_features=card["d"])
    assert (stream.n_rounds, stream.n_features, stream.n_classes) == (card["T"], card["d"], card["K"])
    nnz = stream.X.nnz if sparse.issparse(stream.X) else np.count_nonzero(stream.X)
    assert nnz == card["nnz"]
    sizes = np.bincount(stream.y)
    assert (sizes.min(), sizes.max()) == (card["class_min"], card["class_max"])


@pytest.mark.parametrize("file", ["dna.parquet", "letter.parquet", "soybean.svm.xz"])
def test_real_sets_in_chunks(file):
    path = shared_data() / file
    whole, chunks = open_stream(path), open_stream(path, chunk=997)
    assert chunks.classes == whole.classes
    np.testing.assert_array_equal(np.vstack([dense(X) for X, _ in chunks]), dense(whole.X))
    np.testing.assert_array_equal(np.concatenate([y for _, y in chunks]), whole.y)


def test_digits_are_those_of_scikit_learn():
    stream = open_stream(shared_data() / "digits.svm.xz", n_features=64)
    made = open_stream("digits")
    np.testing.assert_array_equal(dense(stream.X) / 16, made.X)
    np.testing.assert_array_equal(stream.y, made.y)
