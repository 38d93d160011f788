"""The vocabulary of docs/reference/glossary.md is kept, and the public API is documented."""

import ast
import functools
import importlib
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gaptron

PACKAGE = Path(gaptron.__file__).parent
ROOT = Path(__file__).parents[1]

# Words that were replaced, and what replaced them. They may not come back as parts of names.
RETIRED = {
    "among": "available",
    "worth": "rewards",
    "control": "epsilon",
    "chance": "propensity",
    "taught": "off_policy",
    "teach": "evaluate_learning",
    "judge": "evaluate_frozen",
    "verdict": "OffPolicyEstimate",
    "sure": "proven",
    "room": "buffer",
    "rooms": "buffers",
    "remembers": "late_fields",
    "desk": "Coordinator or Workspace",
    "decider": "Replica",
    "fold": "model_state",
    "beat": "heartbeat",
    "ticked": "TimedOut",
    "forgot": "Redacted",
    "would": "shadow_label",
    "apprentice": "shadow",
    "voice": "expert",
    "voices": "experts",
    "heard": "expert weights",
    "spoke": "n_experts",
    "invite": "add_caller_experts",
    "listen": "predict_experts",
    "believe": "update_weights",
    "harden": "update_precision",
    "council": "ensemble",
    "snapshot.py": "state_tree",
    "piece": "chunk",
    "pieces": "chunks",
    "palette": "theme",
    "house": "architecture",
    "answer": "feedback or outcome",
    "answers": "feedback or outcomes",
    "adviser": "expert",
    "advisers": "experts",
    "answered": "learned",
    "hope": "the statistical term",
    "lateness": "delay",
    "look": "score or read",
    "opinion": "advice",
    "opinions": "advice",
    "told": "revealed",
}
# Turns of phrase that a reader has to decode. They may not come back in what people read: docstrings, comments,
# messages, help texts, pages.
PHRASES = (
    r"(?-i:^|[.:;!?] )(?-i:So|Else|Neither|Nor|Behind it|With it)[ ,]",
    r"(?<!there )\b(?:is|are) no (?!longer\b|more\b)",
    r"\b(?:is|are|was|were) told\b",
    r"\bof (?:one's|its|their|your|our) own(?=[.,;:)]|$)",
    r"\b(?:speaks? of|looks? again|way out|free rounds?)\b",
    r"\b(?:anew|wakes?|heard|shall|lives|council|advisers?|answers?|answered|verdict|opinions?)\b",
    r"\b(?:judges?|teach|taught|strangers?)\b",
)
RETIRED_IN_SERVE = {"entries": "events", "entry": "event", "words": "schemas"}  # elsewhere they have other meanings
PUBLIC = (
    "gaptron",
    "gaptron.abstention",
    "gaptron.algorithms.protocol",
    "gaptron.client",
    "gaptron.features",
    "gaptron.learner",
    "gaptron.offpolicy",
    "gaptron.river",
    "gaptron.streams",
)


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a file defines or uses, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def parts(name: str) -> list[str]:
    """The words of a name: `SavedScratch` and `saved_scratch` are two words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().strip("_").split("_")


def test_retired_words_do_not_come_back_as_names() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for name, line in names_in(ast.parse(path.read_text(encoding="utf-8"))):
            place = path.relative_to(PACKAGE)
            retired = RETIRED | RETIRED_IN_SERVE if place.parts[0] == "serve" else RETIRED
            found += [f"{place}:{line}: {name}: say {retired[part]}" for part in parts(name) if part in retired]
    assert not found, "\n".join(found)


@functools.cache
def prose_in(path: Path) -> list[tuple[str, int]]:
    """What a person reads in a file: docstrings, comments, messages and help texts, or all of a page; with its line."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [(" ".join(source.split()), 1)]
    return [(" ".join(text.split()), line) for text, line in _prose_of(source)]


def _prose_of(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value, node.lineno
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# "), token.start[0]


PAGES = ["*.md", "docs/**/*.md", "docs/results/data/*.json", "docs/*.py", "docs/gallery/*.py", "benchmarks/*.py"]
SOURCES = ["src/gaptron/**/*.py", "src/gaptron/**/*.html", "src/gaptron/*/page/*.*"]
READ = [path for pattern in [*PAGES, *SOURCES] for path in ROOT.glob(pattern)]


@pytest.mark.xdist_group("phrases")  # one process reads all files once
@pytest.mark.parametrize("phrase", PHRASES)
def test_retired_phrases_do_not_come_back(phrase: str) -> None:
    found = []
    for path in sorted(READ):
        for text, line in prose_in(path):
            for match in re.finditer(phrase, text, re.I):
                near = text[max(match.start() - 40, 0) : match.end() + 40]
                found.append(f"{path.relative_to(ROOT)}:{line}: {near}")
    assert len(READ) > 250 and not found, "\n".join(found)


def public_callables() -> list[Any]:
    """Every public function, class and method of the public modules."""
    found: dict[str, Any] = {}
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
            thing = getattr(module, name)
            if not getattr(thing, "__module__", "").startswith("gaptron"):
                continue
            if inspect.isfunction(thing):
                found[f"{thing.__module__}.{name}"] = thing
            elif inspect.isclass(thing):
                for method_name, method in vars(thing).items():
                    function = method.__func__ if isinstance(method, classmethod | staticmethod) else method
                    if inspect.isfunction(function) and not method_name.startswith("_"):
                        found[f"{thing.__module__}.{name}.{method_name}"] = function
    return [pytest.param(thing, id=name) for name, thing in sorted(found.items())]


@pytest.mark.parametrize("function", public_callables())
def test_public_functions_document_arguments_and_result(function: Any) -> None:
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    arguments = [name for name in signature.parameters if name not in ("self", "cls")]
    if arguments:
        _, found, section = text.partition("Args:\n")
        assert found, "has no Args section"
        section = re.split(r"^\w+:\n", section, maxsplit=1, flags=re.M)[0]
        documented = set(re.findall(r"^ {4}\*{0,2}(\w+)(?:, \*{0,2}(?:\w+))*(?: \(.*?\))?:", section, re.M))
        missing = [name for name in arguments if name not in documented]
        assert not missing, f"Args does not document {', '.join(missing)}"
    if signature.return_annotation not in (None, "None", inspect.Signature.empty) and arguments:
        assert "Returns:\n" in text or "Yields:\n" in text, "has no Returns section"
