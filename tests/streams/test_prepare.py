"""Preparation: each step does what its name says, in the fixed order, and nothing is written in place."""

import numpy as np
import pytest
from scipy import sparse

from gaptron.errors import InputError
from gaptron.streams import Chunks, Stream, open_stream, prepare
from tests.streams import writers
from tests.streams.writers import dense, put

rng = np.random.default_rng(5)
X = rng.normal(size=(30, 4)) * (rng.random((30, 4)) < 0.7) * 10
X[:, 2] = 3.0
X[4] = 0.0
y = np.arange(30) % 3
KINDS = {"dense": np.array, "single": lambda X: np.array(X, np.float32), "sparse": sparse.csr_array}


@pytest.fixture(params=KINDS)
def stream(request):
    made = Stream.from_arrays(KINDS[request.param](X), y, name=request.param)
    for array in (made.X.data, made.X.indices, made.X.indptr) if sparse.issparse(made.X) else (made.X,):
        array.setflags(write=False)
    made.y.setflags(write=False)
    return made


def close(actual, expected):
    np.testing.assert_allclose(dense(actual), expected, rtol=1e-6, atol=1e-7)


def test_unit_norm(stream):
    after = prepare(stream, unit_norm=True)
    norms = np.linalg.norm(dense(after.X), axis=1)
    np.testing.assert_allclose(np.delete(norms, 4), 1.0, rtol=1e-6)
    assert norms[4] == 0.0 and after.prepared == ("unit norm",) and after.X.dtype == stream.X.dtype
    close(after.X * np.linalg.norm(X, axis=1)[:, None], X)


def test_constant(stream):
    after = prepare(stream, constant=True)
    assert after.n_features == 5 and after.prepared == ("constant feature",)
    close(after.X, np.column_stack([X, np.ones(30)]))
    assert not sparse.issparse(after.X) or after.X.has_canonical_format


def test_log1p(stream):
    after = prepare(stream, log1p=True)
    close(after.X, np.sign(X) * np.log1p(np.abs(X)))
    assert after.prepared == ("log1p",)


def test_shuffle(stream):
    after = prepare(stream, shuffle=3)
    order = np.random.default_rng(3).permutation(30)
    close(after.X, X[order])
    np.testing.assert_array_equal(after.y, y[order])
    assert after.prepared == ("shuffled (seed 3)",)
    assert not sparse.issparse(after.X) or after.X.has_canonical_format


@pytest.mark.parametrize("limit,kept", [(1, 1), (12, 12), (99, 30)])
def test_limit(stream, limit, kept):
    after = prepare(stream, limit=limit)
    assert after.n_rounds == kept and after.classes == stream.classes
    close(after.X, X[:limit])


def test_standardize(stream):
    if sparse.issparse(stream.X):
        with pytest.raises(InputError, match="would make sparse examples dense"):
            prepare(stream, standardize=True)
        return
    after = prepare(stream, standardize=True)
    assert "uses the whole stream" in after.prepared[0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    assert np.abs(Z).max() > 5 and after.X.dtype == stream.X.dtype
    np.testing.assert_allclose(after.X, np.clip(Z, -5, 5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3])
def test_a_column_without_spread_becomes_zero(value):
    still = np.column_stack([np.full(30, value), np.arange(30.0)])
    after = prepare(Stream.from_arrays(still, y), standardize=True)
    assert np.abs(after.X[:, 0]).max() < 1e-6


def test_standardize_clips():
    wild = np.zeros((1000, 1))
    wild[0] = 1e6
    after = prepare(Stream.from_arrays(wild, np.arange(1000) % 2), standardize=True)
    assert after.X.max() == 5.0


def test_the_order_is_fixed_and_named():
    stream = Stream.from_arrays(X, y)
    after = prepare(stream, shuffle=1, unit_norm=True, constant=True, standardize=True, log1p=True, limit=20)
    words = [word.split(" (")[0] for word in after.prepared]
    assert words == ["first 20 rounds", "log1p", "standardized", "constant feature", "unit norm", "shuffled"]
    Z = np.sign(X[:20]) * np.log1p(np.abs(X[:20]))
    Z = np.clip((Z - Z.mean(axis=0)) / Z.std(axis=0), -5, 5)
    Z = np.column_stack([Z, np.ones(20)])
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    np.testing.assert_allclose(after.X, Z[np.random.default_rng(1).permutation(20)], rtol=1e-4, atol=1e-6)


def test_steps_add_to_what_was_done_before(stream):
    twice = prepare(prepare(stream, log1p=True), unit_norm=True)
    assert twice.prepared == ("log1p", "unit norm") and twice.name == stream.name


@pytest.mark.parametrize("size", [4, 7, 50])
@pytest.mark.parametrize("limit", [None, 1, 8, 13, 99])
def test_chunks_are_prepared_on_the_way(tmp_path, size, limit):
    path = put(tmp_path, "a.svm", writers.svmlight(X, y))
    steps = {"log1p": True, "constant": True, "unit_norm": True, "limit": limit}
    whole, chunks = prepare(open_stream(path), **steps), prepare(open_stream(path, chunk=size), **steps)
    assert isinstance(chunks, Chunks)
    for _ in range(2):
        pairs = list(chunks)
        np.testing.assert_array_equal(np.vstack([dense(X) for X, _ in pairs]), dense(whole.X))
        np.testing.assert_array_equal(np.concatenate([y for _, y in pairs]), whole.y)
    assert (chunks.n_features, chunks.n_rounds, chunks.prepared) == (5, whole.n_rounds, whole.prepared)


def test_no_chunk_is_read_after_a_limit_that_ends_with_one(tmp_path):
    chunks = open_stream(put(tmp_path, "a.svm", writers.svmlight(X, y)), chunk=4)
    assert [len(y) for _, y in prepare(chunks, limit=8)] == [4, 4]
    assert [len(y) for _, y in prepare(chunks, limit=9)] == [4, 4, 1]


def test_the_norm_of_chunks_is_known_where_every_round_is_kept(tmp_path):
    chunks = open_stream(put(tmp_path, "a.svm", writers.svmlight(X, y)), chunk=4)
    assert chunks.norm == prepare(chunks).norm == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert prepare(chunks, limit=8).norm is None and prepare(chunks, log1p=True).norm is None
    assert prepare(chunks, limit=8).measured_norm() == pytest.approx(np.linalg.norm(X[:8], axis=1).max())
    assert (
        prepare(chunks, limit=8, unit_norm=True).norm == 1.0 and prepare(chunks, unit_norm=True, log1p=True).norm == 1.0
    )


def test_chunks_of_unknown_length_stay_so(tmp_path):
    path = put(tmp_path, "a.svm", writers.svmlight(X, y))
    assert prepare(open_stream(path, chunk=4, classes=range(3), n_features=4), limit=5).n_rounds is None


@pytest.mark.parametrize("step", [{"shuffle": 0}, {"standardize": True}])
def test_chunks_cannot_look_ahead(tmp_path, step):
    chunks = open_stream(put(tmp_path, "a.svm", writers.svmlight(X, y)), chunk=4)
    with pytest.raises(InputError, match="in memory"):
        prepare(chunks, **step)


def test_limit_and_seed_are_checked(stream):
    with pytest.raises(InputError, match="at least 1"):
        prepare(stream, limit=0)
    with pytest.raises(InputError, match="negative"):
        prepare(stream, shuffle=-1)
