"""Several threads and one learner: many may read, one may write, and no thread gets a wrong number without an error."""

import contextlib
import copy
import dis
import sys
import threading

import numpy as np
import pytest

from gaptron import Abstainer, InUseError, Learner
from gaptron.learner import locking
from tests.conftest import noisy_stream

STREAM = noisy_stream(400, d=8, K=4)


def off_policy(algorithm="advised-gaptron", feedback="bandit"):
    learner = Learner(algorithm, n_classes=4, feedback=feedback, seed=0)
    learner.play(STREAM.X, STREAM.y)
    return learner


def at_once(*jobs):
    """Run the jobs in threads that start together; what each returned or raised."""
    barrier, outcomes = threading.Barrier(len(jobs)), [None] * len(jobs)

    def run(i):
        barrier.wait()
        try:
            outcomes[i] = jobs[i]()
        except Exception as error:
            outcomes[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize(("algorithm", "feedback"), [("advised-gaptron", "bandit"), ("confidit", "bandit")])
def test_many_threads_may_read_at_once(algorithm, feedback):
    learner = off_policy(algorithm, feedback)
    wanted = learner.distribution(STREAM.X)

    def look():
        return max(np.abs(learner.distribution(STREAM.X) - wanted).max() for _ in range(60))

    assert at_once(look, look, look, look) == [0.0] * 4


def test_two_threads_that_play_get_an_error_and_nothing_is_lost():
    learner = off_policy("frugal-gaptron", "full")
    X, y = np.tile(STREAM.X, (200, 1)), np.tile(STREAM.y, 200)
    done = threading.Event()
    entered = threading.Event()

    def first():
        learner.play(X, y, progress=lambda rounds: (entered.set(), done.wait(0.05)))
        return "played"

    def second():
        entered.wait()
        return learner.play(X, y)

    before = learner.rounds
    one, two = at_once(first, second)
    assert one == "played" and isinstance(two, InUseError)
    assert learner.rounds == learner.decided == before + len(y)


def test_reading_learning_or_deciding_while_another_thread_writes_is_an_error():
    learner = off_policy("frugal-gaptron", "full")
    X, y = np.tile(STREAM.X, (200, 1)), np.tile(STREAM.y, 200)
    open_one = learner.decide(STREAM.X[0])
    entered, leave = threading.Event(), threading.Event()

    def teach():
        learner.play(X, y, progress=lambda rounds: (entered.set(), leave.wait(5)))

    def disturb():
        entered.wait()
        refused = 0
        for call in (
            lambda: learner.predict(STREAM.X),
            lambda: learner.weights,
            lambda: learner.decide(STREAM.X[0]),
            lambda: learner.learn(open_one, label=0),
            lambda: learner.grow(n_features=20),
            lambda: learner.save("nowhere"),
            lambda: copy.deepcopy(learner),
        ):
            with pytest.raises(InUseError):
                call()
            refused += 1
        leave.set()
        return refused

    assert at_once(teach, disturb) == [None, 7]
    learner.learn(open_one, label=0)


def test_the_thread_that_plays_may_read_between_two_chunks_but_not_write():
    learner, seen = off_policy("frugal-gaptron", "full"), []

    def between(rounds):
        seen.append(learner.predict(STREAM.X[:3]).shape)
        with pytest.raises(InUseError):
            learner.decide(STREAM.X[0])

    learner.play(STREAM.X, STREAM.y, progress=between)
    assert seen == [(3,)]


def test_after_an_error_the_learner_is_free_again():
    learner = off_policy("frugal-gaptron", "full")

    def fail(rounds):
        raise RuntimeError("progress failed")

    with pytest.raises(RuntimeError, match="progress failed"):
        learner.play(STREAM.X, STREAM.y, progress=fail)
    assert learner.predict(STREAM.X).shape == (400,)
    learner.play(STREAM.X, STREAM.y)


def test_two_threads_with_one_abstainer():
    abstainer = Abstainer(3, cost=0.2, seed=0)
    X, y = np.tile([[1.0, -1.0, 1.0]], (50_000, 1)), np.ones(50_000, dtype=np.int64)
    entered = threading.Event()

    def first():
        abstainer.play(X, y, progress=lambda rounds: entered.set())

    def second():
        entered.wait()
        return abstainer.play(X, y)

    _, two = at_once(first, second)
    assert isinstance(two, InUseError) or two.rounds == 50_000  # too late to meet the first
    assert abstainer.rounds == abstainer.decided == (50_000 if isinstance(two, InUseError) else 100_000)


# --- Ctrl-C -----------------------------------------------------------------------------------------------------


def interrupted_at(moment, call):
    """Run it, with a Ctrl-C at that moment in locking.py: as a function begins, or behind a call. Did it come?

    These are the moments at which Python looks for signals (and where a loop begins again).
    """
    left, last = [moment], {}

    def trace(frame, event, _):
        if frame.f_code.co_filename != locking.__file__:
            return None
        frame.f_trace_opcodes = True
        before, last[frame] = last.get(frame), frame.f_lasti
        behind = before is not None and dis.opname[frame.f_code.co_code[before]] in ("CALL", "JUMP_BACKWARD")
        if event == "call" or (event == "opcode" and behind):
            left[0] -= 1
            if left[0] < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("kind", ["reading", "writing"])
def test_ctrl_c_at_any_moment_leaves_it_free(kind):
    """Also while another reads, and where it is refused."""
    for others in (0, 1):
        for moment in range(1000):
            use = locking.UseLock()
            with use.reading if others else contextlib.nullcontext():

                def enter(use=use):
                    with getattr(use, kind):
                        pass

                try:
                    came = interrupted_at(moment, enter)
                except InUseError:
                    came = False
                    assert others and kind == "writing"
            for free in (lambda use=use: use.writing, lambda use=use: use.reading, lambda use=use: use.writing):
                with free():
                    pass
            if not came:
                assert moment > 5
                break


def test_ctrl_c_in_a_call_that_is_refused_ends_nothing_else():
    """A play that is interrupted while it writes between two chunks continues."""
    for moment in range(1000):
        use = locking.UseLock()

        def again(use=use):
            with use.writing:
                pass

        with use.writing:
            try:
                came = interrupted_at(moment, again)
            except InUseError:
                came = False
            with pytest.raises(InUseError):
                again()
        with use.writing:
            pass
        if not came:
            break
    assert moment > 1


# --- without a learner, whose rounds take long where nothing is compiled ---------------------------------------


@pytest.mark.parametrize(
    ("held", "asked", "allowed"),
    [
        ("reading", "reading", True),
        ("reading", "writing", False),
        ("writing", "reading", False),
        ("writing", "writing", False),
    ],
)
def test_who_may_come_while_another_thread_is_there(held, asked, allowed):
    use = locking.UseLock()

    def come():
        with getattr(use, asked):
            return "came"

    with getattr(use, held):
        (outcome,) = at_once(come)
    assert outcome == "came" if allowed else isinstance(outcome, InUseError)
    assert at_once(come) == ["came"]
