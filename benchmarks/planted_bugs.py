"""Plant bugs one at a time in a copy of the repository, and report those that the quick tests do not catch.

    python benchmarks/planted_bugs.py                       # every bug of planted_bugs.toml
    python benchmarks/planted_bugs.py --only features       # those whose file or description contains this text
    python benchmarks/planted_bugs.py --random 40 --seed 7  # 40 random changes of the source instead
    python benchmarks/planted_bugs.py --suite               # the whole quick suite for those that survive

Each bug is first tried on the nearest test files: the one that mirrors the module, those that import it, then those of
its package. A bug in compiled code would compile everything that uses it again; its nearest tests therefore run
interpreted first, and compiled only if they pass. The copy has its own compile cache, and the checkout is never written
to. A run that fails, hangs or crashes catches the bug if the test that failed passes without the bug. Exits with 1 if a
bug survives.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
BUGS = Path(__file__).with_suffix(".toml")
PACKAGE = "src/gaptron"
COMPILED = ("kernels/", "algorithms/", "abstention/", "types.py")  # as in kernels/compile/cache.py
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "site", "dist"
)
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line")
Outcome = str  # "passed", "failed", "hung" or "no tests"


class Bug(NamedTuple):
    """A change of one file."""

    file: str  # relative to src/gaptron
    old: str  # occurs exactly once, or `at` says where
    new: str
    why: str = ""
    tests: tuple[str, ...] = ()  # tried before the nearest ones
    at: int = -1  # position of `old` in the file; -1: it occurs once


# --- bugs -----------------------------------------------------------------------------------------------------


def listed(path: Path) -> list[Bug]:
    """The bugs of a file."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["bug"]
    return [Bug(**{**row, "tests": tuple(row.get("tests", ()))}) for row in rows]


FLIPS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
SIGNS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"}


def changes(source: str) -> Iterator[tuple[int, str, str]]:
    """Every small change of a source: position, old text, new text. Docstrings and annotations are left alone."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, str]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = place(node.lineno, node.col_offset)
        return start, source[start : place(node.end_lineno, node.end_col_offset)]

    def between(left: ast.expr, right: ast.expr) -> tuple[int, str]:
        assert left.end_lineno is not None and left.end_col_offset is not None
        start = place(left.end_lineno, left.end_col_offset)
        return start, source[start : place(right.lineno, right.col_offset)]

    def operator(left: ast.expr, right: ast.expr, new: str) -> Iterator[tuple[int, str, str]]:
        start, old = between(left, right)
        if old.strip(" ()") and "#" not in old and "\n" not in old:
            yield start, old, old.replace(old.strip(" ()"), new)

    for node in _code(ast.parse(source)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from operator(node.left, node.comparators[0], FLIPS[type(node.ops[0])])
        elif isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            yield from operator(node.left, node.right, SIGNS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            yield from operator(node.values[0], node.values[1], "or" if isinstance(node.op, ast.And) else "and")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            start, old = span(node)
            yield start, old, f"({span(node.operand)[1]})"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            start, old = span(node)
            yield start, old, f"({old} + 1)" if type(node.value) is int else f"({old} * 1.5 + 0.01)"
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield *span(node), str(not node.value)
        elif (
            isinstance(node, ast.Call)
            and len(node.args) == 2
            and not any(isinstance(a, ast.Starred) for a in node.args)
        ):
            (start, first), (other, second) = map(span, node.args)
            yield start, source[start : other + len(second)], second + source[start + len(first) : other] + first
        elif isinstance(node, ast.Assign | ast.AugAssign) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield *span(node), "pass"
        elif isinstance(node, ast.If | ast.IfExp):
            start, old = span(node.test)
            yield start, old, f"(not ({old}))"


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of functions and classes without annotations, decorators and messages of errors."""
    for name, part in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        for child in part if isinstance(part, list) else [part]:
            if isinstance(child, ast.AST):
                yield child
                yield from _code(child)


def random_bugs(number: int, seed: int, only: str) -> list[Bug]:
    """Random changes, spread over the packages: each package is drawn equally often, then one of its changes."""
    rng, found = random.Random(seed), dict[str, list[Bug]]()
    for path in sorted((REPOSITORY / PACKAGE).rglob("*.py")):
        file, source = path.relative_to(REPOSITORY / PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        if only in file:
            many = (Bug(file, old, new, "random", (), at) for at, old, new in changes(source))
            found.setdefault(file.split("/")[0], []).extend(many)
    packages = sorted(name for name, bugs in found.items() if bugs)
    for bugs in found.values():
        rng.shuffle(bugs)
    drawn: list[Bug] = []
    while len(drawn) < number and any(found[name] for name in packages):
        for name in packages:
            if found[name] and len(drawn) < number:
                drawn.append(found[name].pop())
    return drawn


def with_bug(source: str, bug: Bug) -> str | None:
    """The source with the bug; None if the old text is not there exactly once."""
    if bug.at >= 0:
        return source[: bug.at] + bug.new + source[bug.at + len(bug.old) :]
    return source.replace(bug.old, bug.new) if source.count(bug.old) == 1 else None


# --- tests ----------------------------------------------------------------------------------------------------


def nearest(tests: Path, file: str) -> list[str]:
    """The test files for a module: its mirror, those that name it, and those of its package."""
    module = file.removesuffix(".py").removesuffix("/__init__")
    dotted, package, stem = module.replace("/", "."), module.split("/")[0], Path(module).name
    files = sorted(tests.rglob("test_*.py"))
    parent = dotted.rpartition(".")[0]
    names = (f"gaptron.{dotted} ", f"gaptron.{dotted}.", f"from gaptron{'.' * bool(parent)}{parent} import {stem}\n")
    mirror = [path for path in files if path.stem in (f"test_{stem}", f"test_{module.replace('/', '_')}")]
    naming = [path for path in files if any(name in path.read_text(encoding="utf-8") for name in names)]
    folder = [path for path in files if path.relative_to(tests).parts[0] == package] or list(tests.glob("test_*.py"))
    ordered = dict.fromkeys([*mirror, *naming, *folder])
    return [path.relative_to(tests.parent).as_posix() for path in ordered or files]


class Copy:
    """A copy of the repository in which bugs are planted."""

    def __init__(self, folder: Path, timeout: float, workers: str, most: int) -> None:
        folder = folder.resolve()  # the tests run in another folder
        self.root = folder / "repository"
        self.cache = folder / "cache"
        self.timeout, self.workers, self.most = timeout, workers, most
        shutil.rmtree(self.root, ignore_errors=True)  # of an earlier run, whose compile cache is used again
        shutil.copytree(REPOSITORY, self.root, ignore=NOT_COPIED)

    def run(self, tests: tuple[str, ...], *, interpreted: bool = False) -> tuple[Outcome, str]:
        """Run tests; no tests means the whole quick suite. Returns the outcome and the first failure."""
        environment = os.environ | {
            "PYTHONPATH": str(self.root / "src"),
            "XDG_CACHE_HOME": str(self.cache),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_DISABLE_JIT": str(int(interpreted)),
        }
        command = [sys.executable, *PYTEST, "-n", self.workers]
        if tests:  # without the plugins of other packages, which take longer to import than most tests to run
            environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            command = [sys.executable, *PYTEST, "-p", "xdist", "-n", "0", *tests]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            output = ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                output = None
        if output is None:
            return "hung", f"longer than {self.timeout:g} s"
        if process.returncode == 5:
            return "no tests", ""
        failures = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return ("failed", (failures or output.splitlines()[-1:] or [""])[0]) if process.returncode else ("passed", "")

    def verdict(self, bug: Bug, suite: bool) -> str:
        """What happens to a bug: caught, with the test that caught it, or survived."""
        path = self.root / PACKAGE / bug.file
        clean, times = path.read_bytes(), path.stat()
        planted = with_bug(clean.decode(), bug)
        if planted is None:
            return "NOT PLANTED: the old text is not there exactly once"
        near = nearest(self.root / "tests", bug.file)[: self.most]
        tries = [*([bug.tests] if bug.tests else []), *((file,) for file in near)]
        runs = [(tests, mode) for mode in _modes(bug.file) for tests in dict.fromkeys(tries)]
        if suite:
            runs.append(((), False))
        for tests, interpreted in runs:
            known = {folder.name for folder in self._compiled()}
            try:
                path.write_text(planted, encoding="utf-8")
                outcome, failure = self.run(tests, interpreted=interpreted)
            finally:
                path.write_bytes(clean)
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled code of the clean file stays valid
                if bug.file.startswith(COMPILED):
                    self._forget(known)
            if outcome in ("failed", "hung"):
                again = (_test_of(failure),) if "::" in failure else tests
                if self.run(again, interpreted=interpreted)[0] == "passed":
                    return f"caught ({outcome}): {failure}"
                print(f"   not counted, because it fails without a bug: {failure}", flush=True)
        return "SURVIVED"

    def _compiled(self) -> list[Path]:
        return [path for path in (self.cache / "gaptron").glob("numba-*") if path.is_dir()]

    def _forget(self, known: set[str]) -> None:
        """Delete the code that was compiled with a bug."""
        for folder in self._compiled():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)


def _test_of(failure: str) -> str:
    """The test in a line such as "FAILED tests/test_x.py::test_y[z] - AssertionError"."""
    return failure.partition(" ")[2].partition(" - ")[0]


def _modes(file: str) -> tuple[bool, ...]:
    return (True, False) if file.startswith(COMPILED) else (False,)


# --- command --------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bugs", type=Path, default=BUGS, help="the list of bugs")
    parser.add_argument("--only", default="", help="those whose file or description contains this text")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random changes instead of the list")
    parser.add_argument("--seed", type=int, default=0, help="of the random changes")
    parser.add_argument("--suite", action="store_true", help="the whole quick suite for those that survive")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one run of tests")
    parser.add_argument("--nearest", type=int, default=1000, metavar="N", help="at most N of the nearest test files")
    parser.add_argument("--workers", default="auto", help="processes for the whole suite")
    parser.add_argument("--folder", type=Path, help="for the copy; kept. Left out: a temporary one")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the running tests too
    bugs = (
        random_bugs(given.random, given.seed, given.only)
        if given.random
        else [bug for bug in listed(given.bugs) if given.only in f"{bug.file} {bug.why}"]
    )
    survivors = []
    with tempfile.TemporaryDirectory(prefix="planted-bugs-") as temporary:
        copy = Copy(given.folder or Path(temporary), given.timeout, given.workers, given.nearest)
        for number, bug in enumerate(bugs, 1):
            started = time.monotonic()
            verdict = copy.verdict(bug, given.suite)
            seconds = time.monotonic() - started
            print(f"{number}/{len(bugs)} {describe(bug)}\n   {verdict} ({seconds:.0f} s)", flush=True)
            if not verdict.startswith("caught"):
                survivors.append(bug)
    print(f"{len(bugs) - len(survivors)} of {len(bugs)} bugs were caught", *map(describe, survivors), sep="\n")
    return int(bool(survivors))


def describe(bug: Bug) -> str:
    """A bug in one line."""
    old, new = (" ".join(text.split()) for text in (bug.old, bug.new))
    return f"{bug.file}: {bug.why + ': ' if bug.why else ''}{old[:100]!r} → {new[:100]!r}"


if __name__ == "__main__":
    sys.exit(main())
