"""The store: no finished result is lost, and no incomplete line is read as one."""

import errno
import os
from dataclasses import replace

import pytest

from gaptron.errors import InputError, SettingError
from gaptron.experiments.store import Store, latest, read, write
from tests.experiments.test_result import DONE, FAILED

NEXT = replace(DONE, key="next", seed=4)


def test_added_results_are_read_again(tmp_path):
    path = tmp_path / "new" / "r.jsonl"
    with Store(path) as store:
        assert store.result("k") is None
        store.add(DONE)
        assert path.read_text() == DONE.to_json() + "\n"  # before the store is closed
    with Store(path) as store:
        assert store.result("k") == DONE and not store.notes
        store.add(NEXT)
    assert read(path) == ([DONE, NEXT], [])


def test_a_failure_is_no_result_and_a_later_result_replaces_it(tmp_path):
    path = tmp_path / "r.jsonl"
    with Store(path) as store:
        store.add(FAILED)
        assert store.result("k") is None and list(store) == [FAILED]
    with Store(path) as store:
        assert store.result("k") is None
        store.add(DONE)
        assert store.result("k") == DONE
    assert len(read(path)[0]) == 2  # nothing is ever taken out
    assert latest([DONE, FAILED]) == [DONE]  # and a failure after a result does not hide it
    assert latest([FAILED, DONE, NEXT]) == [DONE, NEXT]


@pytest.mark.parametrize("cut", [1, 20, len(DONE.to_json()) - 1])
def test_an_incomplete_last_line_is_removed(tmp_path, cut):
    path = tmp_path / "r.jsonl"
    path.write_text(DONE.to_json() + "\n" + NEXT.to_json()[:cut])
    with Store(path) as store:
        assert store.result("k") == DONE and store.result("next") is None
        assert "incomplete last line" in store.notes[0]
        store.add(NEXT)
    assert read(path) == ([DONE, NEXT], [])


def test_a_last_line_without_a_newline_is_kept(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(DONE.to_json())
    with Store(path) as store:
        assert store.result("k") == DONE and not store.notes
        store.add(NEXT)
    assert read(path) == ([DONE, NEXT], [])


def test_a_damaged_line_in_the_middle_is_skipped_and_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(DONE.to_json().encode() + b"\n\xff\xfe broken\n" + NEXT.to_json().encode() + b"\n")
    with Store(path) as store:
        assert store.result("k") == DONE and store.result("next") == NEXT
    assert "line 2" in store.notes[0]


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "r.jsonl"
    with Store(path), pytest.raises(SettingError, match="being written by another gaptron"):
        Store(path)
    Store(path).__exit__(None, None, None)


def test_a_folder_that_cannot_be_written_and_a_file_that_does_not_exist(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match="cannot be written"):
        Store(tmp_path / "file" / "r.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.jsonl")


def test_writing_replaces_a_file_as_a_whole(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, [DONE])
    write(path, [NEXT])
    assert read(path)[0] == [NEXT] and os.listdir(tmp_path) == ["r.jsonl"]


def test_a_full_disk_leaves_what_was_whole(tmp_path, monkeypatch):
    """The system takes a part of the line and then refuses."""
    path, write_all = tmp_path / "r.jsonl", os.write

    def full(descriptor, data):
        if len(data) > 40:
            return write_all(descriptor, data[:40])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store(path) as store:
        store.add(DONE)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match="No space left"):
                store.add(NEXT)
        assert store.result("next") is None
        assert read(path) == ([DONE], [])
        store.add(NEXT)
    assert read(path) == ([DONE, NEXT], [])


def test_a_deeply_nested_line_is_skipped_and_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(DONE.to_json() + "\n" + "[" * 200_000 + "\n" + NEXT.to_json() + "\n")
    with Store(path) as store:
        assert store.result("k") == DONE and store.result("next") == NEXT
    assert "line 2" in store.notes[0] and "nested" in store.notes[0]
