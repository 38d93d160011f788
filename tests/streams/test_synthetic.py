"""The recipes of the streams that are made, fact by fact."""

import numpy as np
import pytest

from gaptron.errors import InputError
from gaptron.streams import alternating, open_stream, synnonsep, synsep, synswitch, twolabels, xor

STREAM = synsep(20_000, seed=1)
ROWS = STREAM.X.toarray()
LENGTHS = np.diff(STREAM.X.indptr)
PROTOTYPES = np.array([ROWS[STREAM.y == topic, :120].max(axis=0) for topic in range(9)])


def test_shape_and_form():
    assert STREAM.X.shape == (20_000, 400) and STREAM.classes == tuple(range(9))
    assert STREAM.X.dtype == np.float64 and STREAM.X.has_canonical_format
    assert (STREAM.X.data == 1.0).all() and STREAM.X.indices.dtype == np.int32
    assert (
        np.diff(STREAM.X.indices)[np.delete(np.arange(len(STREAM.X.indices) - 1), STREAM.X.indptr[1:-1] - 1)] > 0
    ).all()


def test_each_document_is_a_disturbed_prototype():
    n = PROTOTYPES.sum(axis=1)
    assert ((n >= 20) & (n <= 40)).all() and len(set(n)) > 1
    assert (LENGTHS == n[STREAM.y] + 15).all()  # so ‖x‖² = n_c + 15
    assert (ROWS[:, 120:].sum(axis=1) == 20).all()
    assert (ROWS[:, :120] <= PROTOTYPES[STREAM.y]).all()
    assert STREAM.norm**2 == pytest.approx(n.max() + 15)


def test_every_bit_is_as_likely():
    common = ROWS[:, 120:].mean(axis=0)
    p = 20 / 280
    assert (np.abs(common - p) < 5 * np.sqrt(p * (1 - p) / 20_000)).all()
    for topic, prototype in enumerate(PROTOTYPES):
        mine = ROWS[STREAM.y == topic][:, np.flatnonzero(prototype)]
        p = 5 / prototype.sum()
        assert (np.abs(1 - mine.mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / len(mine))).all()
    shares = np.bincount(STREAM.y) / 20_000
    assert (np.abs(shares - 1 / 9) < 5 * np.sqrt(8 / 81 / 20_000)).all()


def test_prototypes_separate():
    """⟨v_c, x⟩ is n_c - 5 for the topic and at most an overlap for the others."""
    scores = ROWS[:, :120] @ PROTOTYPES.T
    own = scores[np.arange(20_000), STREAM.y]
    scores[np.arange(20_000), STREAM.y] = -1
    assert (own > scores.max(axis=1)).all()


def test_same_seed_same_stream():
    again, other = synsep(20_000, seed=1), synsep(20_000, seed=2)
    assert (again.X != STREAM.X).nnz == 0 and (again.y == STREAM.y).all()
    assert (other.y != STREAM.y).any() and (other.X != STREAM.X).nnz > 0


def test_noise_always_moves_the_label():
    noisy = synnonsep(20_000, seed=1)
    assert (noisy.X != STREAM.X).nnz == 0
    struck = noisy.y != STREAM.y
    assert abs(struck.mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 20_000)  # were the label kept 1 time in 9: 0.0444
    shifts = np.bincount((noisy.y - STREAM.y)[struck] % 9, minlength=9)
    assert shifts[0] == 0 and shifts[1:].min() > 0.5 * shifts[1:].mean()
    assert (synnonsep(20_000, seed=1, noise=1.0).y != STREAM.y).all()
    assert (synnonsep(20_000, seed=1, noise=0.0).y == STREAM.y).all()
    assert noisy.notes == ("seed 1", "label noise 0.05: one of the other 8")


def test_names_carry_options():
    named = open_stream("synnonsep:rounds=500,seed=3,noise=0.5")
    made = synnonsep(500, 3, 0.5)
    assert (named.X != made.X).nnz == 0 and (named.y == made.y).all() and named.n_rounds == 500
    assert open_stream("synsep:rounds=10").n_rounds == 10


def test_digits():
    stream = open_stream("digits")
    assert stream.X.shape == (1797, 64) and stream.X.max() == 1.0 and stream.X.min() == 0.0
    assert stream.n_classes == 10 and stream.prepared == ("divided by 16",)
    assert stream.X.dtype == np.float64 and stream.X.flags.c_contiguous and stream.y.dtype == np.int64


@pytest.mark.parametrize(
    "words,problem",
    [
        ("synsep:noise=0.1", "synsep has no option 'noise'; its options are: rounds, seed"),
        ("digits:seed=1", "digits has no option 'seed'; its options are: none"),
        ("synsep:rounds=many", "rounds cannot be 'many'"),
        ("synsep:rounds", "rounds cannot be ''"),
        ("synsep:rounds=0", "at least one round"),
        ("synnonsep:noise=1.5", "noise must be a probability"),
        ("synnonsep:noise=nan", "noise must be a probability"),
        ("synsep:seed=-1", "seed must not be negative"),
    ],
)
def test_bad_options_are_refused(words, problem):
    with pytest.raises(InputError, match=problem):
        open_stream(words)


def test_options_of_files_are_refused():
    with pytest.raises(InputError, match="are for files"):
        open_stream("synsep", chunk=10)


def test_a_file_may_have_the_name_of_a_stream(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "synsep").write_text("0 1:1\n1 2:1\n")
    assert open_stream("./synsep", format="svmlight").n_rounds == 2


def test_a_switch_renames_every_topic_at_once():
    plain, switched = synsep(900, seed=4), synswitch(900, seed=4, switches=2)
    assert (switched.X != plain.X).nnz == 0
    names = []
    for part in (slice(0, 300), slice(300, 600), slice(600, 900)):
        pairs = set(zip(plain.y[part].tolist(), switched.y[part].tolist()))
        assert len(pairs) == 9 and len({new for _, new in pairs}) == 9
        names.append(pairs)
    assert names[0] != names[1] != names[2]


def test_two_rules_take_turns():
    stream = alternating(4_000, seed=2, period=100)
    turn = np.arange(4_000) // 100 % 2
    for rule in (0, 1):
        mine = turn == rule
        fitted = np.linalg.lstsq(stream.X[mine], np.eye(5)[stream.y[mine]], rcond=None)[0]
        right = (stream.X @ fitted).argmax(axis=1) == stream.y
        assert right[mine].mean() > 0.8 > 0.5 > right[~mine].mean()


def test_two_labels_of_the_stated_probabilities():
    stream = twolabels(60_000, seed=3, contexts=5, labels=10, first=0.5, second=0.3)
    assert (stream.X.sum(axis=1) == 1).all() and stream.X.shape[1] == 5
    for context in range(5):
        shares = np.sort(np.bincount(stream.y[stream.X.indices == context], minlength=10))[::-1] / 12_000
        assert shares[:2] == pytest.approx([0.52, 0.32], abs=0.03) and shares[2:] == pytest.approx(0.02, abs=0.01)


def test_xor_hides_its_labels_from_every_single_score():
    stream = xor(20_000, seed=5)
    rows = np.column_stack([stream.X, np.ones(20_000)])
    fitted = np.linalg.lstsq(rows, np.eye(4)[stream.y], rcond=None)[0]
    assert np.abs(fitted[:-1]).max() < 0.02
    assert ((rows @ fitted).argmax(axis=1) == stream.y).mean() < 0.3
    first, second = (np.stack([stream.X[:, i] + stream.X[:, i + 1], np.ones(20_000)]) for i in (0, 2))
    best = (first[:, None] + second[None]).reshape(4, -1).argmax(axis=0)
    assert (best == stream.y).mean() == pytest.approx(9 / 16, abs=0.02)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("synswitch:switches=-1", "switches must be at least 0"),
        ("alternating:period=0", "period must be at least 1"),
        ("twolabels:labels=1", "labels must be at least 2"),
        ("twolabels:first=0.2", "second ≤ first"),
        ("twolabels:first=0.9,second=0.2", r"first \+ second ≤ 1"),
        ("xor:rounds=0", "at least one round"),
        ("xor:noise=-1", "noise must be at least 0"),
    ],
)
def test_adversarial_streams_refuse_bad_options(words: str, message: str):
    with pytest.raises(InputError, match=message):
        open_stream(words)


@pytest.mark.parametrize("make", [synsep, synnonsep])
def test_as_many_topics_as_one_likes(make):
    stream = make(500, topics=20)
    assert stream.n_classes == 20 and set(stream.y) == set(range(20))
    same = open_stream(f"{stream.name}:rounds=500,topics=20")
    assert (same.X != stream.X).nnz == 0 and (same.y == stream.y).all()
    with pytest.raises(InputError, match="at least two topics"):
        make(500, topics=1)
