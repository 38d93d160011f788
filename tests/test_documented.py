"""Whatever users can name is in the docs, and every example there runs."""

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import gaptron
import gaptron.abstention
import gaptron.client
import gaptron.features
import gaptron.offpolicy
import gaptron.river
import gaptron.streams
import gaptron.streams.actions
from gaptron.algorithms import NAMES, load

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = [
    path
    for path in [*sorted(DOCS.rglob("*.md")), *ROOT.glob("README.md")]
    if "\n```python\n" in path.read_text(encoding="utf-8") and path.parent.name != "tutorials"  # run from first to last
]


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"gaptron_docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKS, OUTPUTS = _load("hooks"), _load("outputs")
MADE: dict[str, str] = HOOKS.pages()
WRITTEN = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
ALL = "\n".join([*WRITTEN.values(), *MADE.values()])


def test_the_files_are_utf_8_and_name_no_machine() -> None:
    for name, text in {**WRITTEN, **MADE}.items():
        assert not re.search(r"/(work|root|home|tmp)/", text), name


@pytest.mark.parametrize(
    "module",
    [
        gaptron,
        gaptron.features,
        gaptron.abstention,
        gaptron.river,
        gaptron.streams,
        gaptron.streams.actions,
        gaptron.offpolicy,
        gaptron.client,
    ],
    ids=lambda module: module.__name__,
)
def test_every_public_name_has_its_entry(module: ModuleType) -> None:
    entries = set(re.findall(r"^::: ([\w.]+)$", MADE["reference/api.md"], re.M))
    assert not {f"{module.__name__}.{name}" for name in module.__all__} - entries
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_and_setting_has_its_page(name: str) -> None:
    page = MADE[f"reference/algorithms/{name}.md"]
    file = load(name)
    assert f"[{name}]({name}.md)" in MADE["reference/algorithms/index.md"]
    settings = list(inspect.signature(file.recommend).parameters)[1:]
    for setting in settings:
        row = re.findall(rf"^\| `{setting}` \|(.*)\|$", page.partition("## Settings")[2], re.M)[0]
        assert not row.strip().endswith("–"), f"{name}: {setting} says nothing of its meaning"
    for note in file.NOTES:
        assert f"| `{note}` |" in page
    assert "## Bound" in page


def test_the_made_pages_are_those_of_the_names() -> None:
    pages = {Path(path).stem for path in MADE if path.startswith("reference/algorithms/")} - {"index"}
    assert pages == set(NAMES)


def test_every_command_and_option_is_on_the_page() -> None:
    typer = pytest.importorskip("typer")
    cli = pytest.importorskip("gaptron.cli")
    page = WRITTEN["reference/cli.md"]
    missing = []
    for name, command in typer.main.get_command(cli.app).commands.items():
        (section,) = re.findall(rf"^## gaptron {name}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
        for parameter in command.params:
            for word in (*parameter.opts, *parameter.secondary_opts):
                if word.startswith("-") and not re.search(rf"`{word}[ `]", section) and word not in ("-h", "--help"):
                    missing.append(f"{name} {word}")
        known = {word for p in command.params for word in (*p.opts, *p.secondary_opts)} | {"--help"}
        written = set(re.findall(r"^\| `(--[\w-]+)", section, re.M))
        missing += [f"{name} {word} is written but gone" for word in written - known]
    assert not missing


def test_the_errata_are_complete_and_each_is_tested() -> None:
    table, _, tests = WRITTEN["explanation/errata.md"].partition("## The tests")
    assert re.findall(r"^\| E(\d+) \|", table, re.M) == [str(n) for n in range(1, 17)]
    assert re.findall(r"^\| E(\d+) \| `test_e(\d\d)_", tests, re.M) == [
        (str(n), f"{n:02}") for n in range(1, 17) if n != 15
    ]
    if not HOOKS.errata_tests():
        pytest.skip("tests/theory/test_errata.py is not there")
    shown = HOOKS.with_test_names(WRITTEN["explanation/errata.md"])
    assert not re.findall(r"test_e\d\d_\*", shown), "an erratum without a test"


@pytest.mark.sample(12)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    monkeypatch.chdir(tmp_path)
    OUTPUTS.write_files(path, tmp_path)
    names: dict[str, object] = {"__name__": "__example__"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{path.name}, example {number}", "exec"), names)


def test_internal_links_lead_somewhere() -> None:
    pages = set(WRITTEN) | set(MADE)
    for name, text in {**WRITTEN, **MADE}.items():
        for target in re.findall(r"\]\(([^)#:]+\.md)", text):
            here = Path(name).parent / target
            parts: list[str] = []
            for part in here.parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            assert "/".join(parts) in pages or name == "reference/changelog.md", f"{name} → {target}"


# --- formulas ---


def test_formulas_are_drawn_and_none_holds_a_word_of_tex_that_was_not_understood():
    pytest.importorskip("latex2mathml")
    drawn = 0
    for path in sorted(DOCS.rglob("*.md")):
        page = HOOKS.with_formulas(path.read_text(encoding="utf-8"))
        assert "```math" not in page, path.name
        for formula in re.findall(r'<div class="formula"[^>]*>(.*?)</div>', page):
            assert formula.startswith("<math") and "\\" not in formula, (path.name, formula)
            drawn += 1
    assert drawn >= 15


def test_indices_are_set_lower_and_code_stays():
    words = r"x_t, y\*_t, κ_vR², Λ_{T−1}, ℓ^y, a_min; `x_t`, reuters_r8, [a](a_b.md)"
    assert HOOKS.with_indices(words) == (
        r"x<sub>t</sub>, y\*<sub>t</sub>, κ<sub>v</sub>R², Λ<sub>T−1</sub>, ℓ<sup>y</sup>, a<sub>min</sub>; "
        "`x_t`, reuters_r8, [a](a_b.md)"
    )


def test_the_glossary_has_each_word_once_and_in_order() -> None:
    words = [word.lower() for word in re.findall(r"^\| ([^|]+) \| ", WRITTEN["reference/glossary.md"], re.M)][1:]
    assert len(words) > 50 and words == sorted(set(words))


@pytest.mark.parametrize("name", [name for name in WRITTEN if "/" in name])
def test_a_page_begins_with_what_the_reader_can_do(name: str) -> None:
    title, first, *_ = WRITTEN[name].split("\n\n")
    assert re.fullmatch(r"# [^\n]+", title)
    assert re.search(r"\byour?\b", first, re.I), "say what the reader can do, know or look up after this page"
