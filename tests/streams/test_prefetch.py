"""Files are read ahead, in threads: the same rounds, the same errors, and nothing left behind."""

import os
import threading

import numpy as np
import pytest

from gaptron.errors import StreamError
from gaptron.streams import open_stream, prefetch, prepare, source
from tests.streams.writers import put

T, LINES = 400, 10
TEXTS = {
    "a.svm": "".join(f"{t % 3} 1:{t} {2 + t % 5}:1\n" for t in range(T)),
    "a.vw": "".join(f"{t % 3} | n:{t} f{t % 5}\n" for t in range(T)),
}


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith(prefetch.THREAD_NAME)]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", TEXTS)
def test_the_rounds_come_in_their_order(tmp_path, monkeypatch, name, threads):
    monkeypatch.setattr(os, "cpu_count", lambda: threads)
    path = put(tmp_path, name, TEXTS[name])
    whole = open_stream(path, n_features=64)
    for size in (1, LINES, T):
        streams = list(open_stream(path, n_features=64, chunk=size).streams())
        assert len(streams) == T // size
        assert (np.vstack([stream.X.toarray() for stream in streams]) == whole.X.toarray()).all()
        assert (np.concatenate([stream.y for stream in streams]) == whole.y).all()
        assert (np.concatenate([stream.norms for stream in streams]) == whole.norms).all()
    assert not readers()


@pytest.mark.parametrize("name,bad", [("a.svm", "0 1:x\n"), ("a.svm", "0 1:inf\n"), ("a.vw", "0 | a:x\n")])
def test_an_error_comes_after_the_rounds_before_it(tmp_path, name, bad):
    lines = TEXTS[name].splitlines(keepends=True)
    lines[205] = lines[333] = bad
    path = put(tmp_path, name, "".join(lines))
    with pytest.raises(StreamError) as caught:
        open_stream(path, chunk=LINES)
    assert caught.value.line == 206
    streams = open_stream(path, chunk=LINES, classes=[0, 1, 2], n_features=64).streams()
    for _ in range(20):
        assert next(streams).n_rounds == LINES
    with pytest.raises(StreamError) as caught:
        next(streams)
    assert caught.value.line == 206 and not readers()


def test_who_stops_early_leaves_no_thread_and_no_open_file(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(source.Source, "_file", lambda self: opened.append(open(self.path, "rb")) or opened[-1])
    chunks = open_stream(put(tmp_path, "a.svm", TEXTS["a.svm"]), chunk=LINES)
    assert sum(stream.n_rounds for stream in prepare(chunks, limit=35).streams()) == 35
    streams = chunks.streams()
    next(streams)
    assert readers()
    streams.close()
    streams = chunks.streams()
    with pytest.raises(KeyboardInterrupt):
        for _ in streams:
            raise KeyboardInterrupt
    del streams
    assert not readers() and all(file.closed for file in opened)


def test_a_pipe_is_not_read_ahead():
    reading, writing = os.pipe()
    stopped, waited = threading.Event(), []

    def write():
        with open(writing, "wb", buffering=0) as pipe:
            pipe.write(b"0 1:1\n")
            waited.append(stopped.wait(5))  # or whoever wants no more would wait for this

    writer = threading.Thread(target=write)
    writer.start()
    chunks = open_stream(f"/dev/fd/{reading}", format="svmlight", chunk=1, classes=[0, 1], n_features=3, index_base=1)
    streams = chunks.streams()
    assert next(streams).n_rounds == 1
    streams.close()
    stopped.set()
    writer.join()
    os.close(reading)
    assert waited == [True]
