"""Generate pages from the package at build time: algorithms, gallery, reference, results, changelog.

The algorithms are imported with the compiler off, so that a build compiles nothing. A new algorithm or gallery example
gets its page without a change here.
"""

import ast
import html
import importlib
import inspect
import os
import re
import sys
import typing
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, NamedTuple

if "numba" not in sys.modules:  # a process that builds the pages, not one that runs the tests
    os.environ["NUMBA_DISABLE_JIT"] = "1"

sys.path.insert(0, str(Path(__file__).parent))

import http_page
import result_pages

from gaptron.algorithms import NAMES, load
from gaptron.types import Card

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"
ALGORITHMS = "reference/algorithms"  # folder of their pages
PUBLIC = (
    "gaptron",
    "gaptron.features",
    "gaptron.abstention",
    "gaptron.river",
    "gaptron.streams",
    "gaptron.streams.actions",
    "gaptron.offpolicy",
    "gaptron.client",
)
CARD_TITLES = {
    "paper": "Paper",
    "feedback": "Feedback",
    "losses": "Losses",
    "time": "Time per round",
    "memory": "Memory",
    "regret_full": "Regret, full information",
    "regret_bandit": "Regret, bandit",
    "takes": "Also takes",
}
TAKES = {  # flags of a card
    "advice": "advice",
    "available": "available labels",
    "rewards": "rewards in [0, 1]",
    "actions": "actions with features",
}


# --- markdown ---------------------------------------------------------------------------------------------


def prose(text: str) -> str:
    """Escape text for Markdown: formulas keep their stars and underscores, code its backticks."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_\[\]<>\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def cell(text: str) -> str:
    """Escape text for a cell of a table."""
    return prose(text).replace("|", r"\|").replace("\n", " ") or "–"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Build a Markdown table from cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


BLOCKS = {"    >>> ": "pycon", "    @": "bibtex"}  # start of an indented block → its language


def body(docstring: str) -> str:
    """Convert a docstring to Markdown: indented parts become code blocks, `Args:` becomes a table."""
    out: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        if paragraph.startswith("Args:"):
            entries = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", paragraph, re.M)
            out.append(table(["argument", "meaning"], [[f"`{n}`", cell(re.sub(r"\s+", " ", m))] for n, m in entries]))
        elif paragraph.startswith("    "):
            out.append(paragraph)
        elif re.search(r"^    ", paragraph, re.M):
            words, block = re.split(r"\n(?=    )", paragraph, maxsplit=1)
            out += [prose(words), block]
        else:
            out.append(prose(paragraph))
    joined: list[str] = []
    for part in out:
        if not part.startswith("    "):
            joined.append(part)
        elif joined and joined[-1].startswith("```"):
            joined[-1] = joined[-1][:-4] + "\n\n" + _dedent(part) + "\n```"
        else:
            kind = next((word for start, word in BLOCKS.items() if part.startswith(start)), "text")
            fence = "``` { .text .lines }" if kind == "text" else f"```{kind}"
            joined.append(f"{fence}\n" + _dedent(part) + "\n```")
    return "\n\n".join(joined) + "\n"


def _dedent(block: str) -> str:
    return "\n".join(line[4:] for line in block.splitlines())


# --- algorithms -------------------------------------------------------------------------------------------


def card_facts(card: Card) -> dict[str, str]:
    """The fields of a card as users write them: Loss.SMOOTH_HINGE is smooth-hinge."""
    facts = {
        name: ", ".join(item.word for item in value) if isinstance(value, tuple) else str(value)
        for name, value in card._asdict().items()
        if name in CARD_TITLES
    }
    return facts | {"takes": ", ".join(title for flag, title in TAKES.items() if getattr(card, flag))}


def comments(algorithm: ModuleType) -> dict[str, str]:
    """The comment beside each field of the settings that `recommend` returns."""
    returned = typing.get_type_hints(algorithm.recommend)["return"]
    classes = typing.get_args(returned) if isinstance(returned, UnionType) else (returned,)
    found: dict[str, str] = {}
    for settings in classes:
        lines = inspect.getsource(settings).splitlines()
        for field in settings._fields:
            line = next(line for line in lines if re.match(rf"\s+{field}:", line))
            found[field] = _comment(line)
    return found


def _comment(line: str) -> str:
    return re.sub(r"\s+", " ", line.partition("#")[2]).strip()


def settings_rows(algorithm: ModuleType) -> list[list[str]]:
    """One row of a table for each setting a user may give."""
    meanings, rows = comments(algorithm), []
    for parameter in list(inspect.signature(algorithm.recommend).parameters.values())[1:]:
        kind = inspect.formatannotation(parameter.annotation).removesuffix(" | None")
        default = "the theorem's" if parameter.default is None else repr(parameter.default).replace("'", '"')
        rows.append([f"`{parameter.name}`", cell(kind), cell(default), cell(meanings.get(parameter.name, ""))])
    return rows


def note_rows(algorithm: ModuleType) -> list[list[str]]:
    """One row of a table for each number that a trace keeps of a round."""
    line = next((line for line in inspect.getsource(algorithm).splitlines() if line.startswith("NOTES =")), "")
    meaning = _comment(line) if len(algorithm.NOTES) == 1 else ""
    return [[f"`{note}`", cell(meaning)] for note in algorithm.NOTES]


def algorithm_page(name: str) -> str:
    """One algorithm's page."""
    algorithm = load(name)
    title, _, rest = inspect.cleandoc(algorithm.__doc__ or "").partition("\n")
    parts = [f"# {name}\n", f"**{prose(title)}**\n", body(rest)]
    facts = card_facts(algorithm.CARD)
    listed = [[title, cell(facts[key])] for key, title in CARD_TITLES.items() if facts.get(key)]
    parts += ["## At a glance\n", table(["Name", f"`{name}`"], listed)]
    parts.append("## Settings\n")
    settings = settings_rows(algorithm)
    if settings:
        first = settings[0][0].strip("`")
        parts.append(f'Pass them by name: `Learner("{name}", ..., {first}=...)`.\n')
        parts.append(table(["setting", "type", "default", "meaning"], settings))
    else:
        parts.append("None.\n")
    parts.append("Defaults: " + body(algorithm.recommend.__doc__ or ""))
    given = {row[0].strip("`") for row in settings}
    fixed = [
        f"`{field}`" + (f" ({prose(meaning)})" if meaning else "")
        for field, meaning in comments(algorithm).items()
        if field not in given
    ]
    if fixed:
        parts.append(f"Set by the learner from the problem: {'; '.join(fixed)}.\n")
    parts += ["## Bound\n", body(algorithm.bound.__doc__ or "")]
    if hasattr(algorithm, "excused"):
        parts.append("Rounds left out of the comparator's loss: " + body(algorithm.excused.__doc__ or ""))
    notes = note_rows(algorithm)
    if notes:
        parts += ["## Notes in a trace\n", table(["note", "meaning"], notes)]
    return "\n".join(parts)


def algorithm_index() -> str:
    """The table of all algorithms."""
    head = ["algorithm", "paper", "feedback", "losses", "time", "regret, full", "regret, bandit", "also takes"]
    keys = ["paper", "feedback", "losses", "time", "regret_full", "regret_bandit", "takes"]
    rows = []
    for name in NAMES:
        facts = card_facts(load(name).CARD)
        rows.append([f"[{name}]({name}.md)", *(cell(facts.get(key, "")) for key in keys)])
    return (
        "# Algorithms\n\n"
        "Here you can look up every algorithm, its settings and its bound: one paper, one file, one page. *Regret* is "
        "what the proved bound on the expected mistakes adds to the loss L_T(U) of the best linear rule U; D bounds "
        "‖U‖. Letters: [notation](../notation.md). "
        "Which one to use: [how to choose](../../how-to/choose.md).\n\n" + table(head, rows)
    )


# --- gallery ----------------------------------------------------------------------------------------------


class Example(NamedTuple):
    """One gallery example, with the output of its last run by `scripts/outputs`."""

    name: str
    title: str
    words: str  # markdown
    code: str
    output: str


def gallery() -> list[Example]:
    """All examples, by name."""
    return [_example(path) for path in sorted(GALLERY.glob("*.py"))]


def _example(path: Path) -> Example:
    source = path.read_text(encoding="utf-8")
    first = ast.parse(source).body[0]
    title, _, words = inspect.cleandoc(ast.get_docstring(ast.parse(source)) or "").partition("\n")
    code = "\n".join(source.splitlines()[first.end_lineno :]).strip()
    return Example(path.stem, title, words.strip(), code, path.with_suffix(".txt").read_text(encoding="utf-8"))


def example_page(example: Example) -> str:
    """One example's page: text, picture, output, and the code cell by cell."""
    return (
        f"# {example.title}\n\n{example.words}\n\n![{example.title}](../img/gallery/{example.name}.png)\n\n"
        f"It prints\n\n```text\n{example.output}```\n\n## The code\n\n"
        f"The file is [{example.name}.py]({example.name}.py). Its cells begin with `# %%`, so that editors that know "
        "this mark, such as VS Code, Spyder and Jupyter with Jupytext, open it as a notebook.\n\n"
        f"{notebook(example.code)}"
    )


def notebook(code: str) -> str:
    """The cells of a script, each below its first line."""
    first, *cells = re.split(r"^# %% (.*)\n", code, flags=re.M)
    parts = [f"```python\n{first.strip()}\n```\n"]
    for words, cell in zip(cells[::2], cells[1::2]):
        parts.append(f"{words}\n\n```python\n{cell.strip()}\n```\n")
    return "\n".join(parts)


def gallery_index(found: list[Example]) -> str:
    """The examples' pictures and introductions."""
    parts = [
        "# Gallery\n",
        "With these short programs you can see what a task looks like in code. Each runs as it is; a page shows the "
        "picture it draws and the numbers it prints.\n",
    ]
    for example in found:
        head = example.words.split("\n\n")[0]
        picture = f"[![{example.title}](../img/gallery/{example.name}.png){{ width=320 }}]({example.name}.md)"
        parts.append(f"## [{example.title}]({example.name}.md)\n\n{picture}\n\n{head}\n")
    return "\n".join(parts)


# --- reference --------------------------------------------------------------------------------------------


def public(module: str) -> list[str]:
    """The names in a module's `__all__`."""
    return sorted(importlib.import_module(module).__all__)


def api_page() -> str:
    """A directive for every public name, which mkdocstrings replaces by its signature and docstring."""
    parts = [
        "# Reference\n",
        "Generated from the docstrings. Names that are not on this page may change at any time.\n",
    ]
    for module in PUBLIC:
        parts += [f"## {module}\n", *(f"::: {module}.{name}\n" for name in public(module))]
    errors = "::: gaptron.errors\n    options:\n      members: false\n      show_root_heading: false\n"
    return "\n".join([*parts, "## Errors\n", errors])


# --- errata -----------------------------------------------------------------------------------------------


def errata_tests() -> list[str]:
    """The names of the tests that demonstrate the errata; empty if the file is missing."""
    path = ROOT / "tests" / "theory" / "test_errata.py"
    if not path.exists():
        return []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_e")]


def with_test_names(markdown: str) -> str:
    """Replace `test_e01_*` by the names of the tests with that prefix."""
    found = errata_tests()

    def named(match: re.Match[str]) -> str:
        full = [name for name in found if name.startswith(match[1])]
        return "<br>".join(f"`{name}`" for name in full) or match[0]

    return re.sub(r"`(test_e\d\d_)\*`", named, markdown)


# --- formulas ---------------------------------------------------------------------------------------------


def with_formulas(markdown: str) -> str:
    """Convert blocks of TeX to MathML, which browsers display without scripts, fonts or network."""
    from latex2mathml.converter import convert  # noqa: PLC0415  (tests import this file without it)

    def drawn(match: re.Match[str]) -> str:
        words = html.escape(" ".join(match[1].split()), quote=True)
        parts = (convert(part, display="block") for part in re.split(r"\\qquad", match[1].strip()))
        return f'<div class="formula" data-tex="{words}">{"".join(parts)}</div>'

    return re.sub(r"^```math\n(.*?)\n```$", drawn, markdown, flags=re.M | re.S)


FORMULAS = (  # pages whose letters have indices
    "explanation/actions",
    "explanation/advised",
    "explanation/errata",
    "explanation/frugal",
    "explanation/observed",
    "explanation/offpolicy",
    "explanation/theory",
    "how-to/abstention",
    "how-to/available-labels",
    "how-to/late-feedback",
    "how-to/offpolicy",
    "reference/notation",
)
# A letter, perhaps with a mark or a prime, or a short word; then _ or ^ and an index of one letter, or in braces: x_t,
# p̃_y, y\*_t, z_y\*, κ_vR², a_min, Λ_{T−1}, ℓ^y.
_BASE = r"(?:(?<![a-z_])[^\W\d_]|\b(?:gap|mask|max|min))[\u0302-\u0304]?(?:'|\\\*|\*)*|(?<=\))"
_INDEX = re.compile(rf"({_BASE})([_^])(\{{[^}}\n]+\}}|min|max|[^\W\d_]\u0303?(?:\\\*)?|\d)")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`|<div class=\"formula\".*?</div>|\]\([^)]*\))", re.M | re.S)


def with_indices(markdown: str) -> str:
    """Typeset indices in the text of a theory page as sub- and superscripts: x_t, ℓ^y. Code is left alone."""
    parts = _CODE.split(markdown)
    for at in range(0, len(parts), 2):
        parts[at] = _INDEX.sub(_moved, parts[at])
    return "".join(parts)


def _moved(found: re.Match[str]) -> str:
    tag = "sub" if found[2] == "_" else "sup"
    index = found[3].removeprefix("{").removesuffix("}")
    return f"{found[1]}<{tag}>{index}</{tag}>"


# --- for mkdocs -------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Every generated page, by its path."""
    made = {f"{ALGORITHMS}/index.md": algorithm_index()}
    made |= {f"{ALGORITHMS}/{name}.md": algorithm_page(name) for name in NAMES}
    examples = gallery()
    made["gallery/index.md"] = gallery_index(examples)
    made |= {f"gallery/{example.name}.md": example_page(example) for example in examples}
    made |= result_pages.pages()
    made["reference/api.md"] = api_page()
    made["reference/http.md"] = http_page.page()
    changelog = ROOT / "CHANGELOG.md"
    if changelog.exists():
        made["reference/changelog.md"] = changelog.read_text(encoding="utf-8")
    return made


def on_config(config: Any) -> Any:
    """Add the generated pages to the navigation, in the places that mkdocs.yml leaves for them."""
    made = pages()
    _fill(config.nav, "Gallery", [path for path in made if path.startswith("gallery/")])
    _fill(config.nav, "Algorithms", [path for path in made if path.startswith(ALGORITHMS)])
    _fill(config.nav, "Results", [path for path in made if path.startswith("results/")])
    config.watch = [*config.watch, str(ROOT / "src" / "gaptron"), str(GALLERY), str(result_pages.DATA)]
    return config


def _fill(nav: list[Any], title: str, paths: list[str]) -> None:
    """Put pages into the empty list with this title."""
    for entry in nav:
        for name, listed in entry.items() if isinstance(entry, dict) else ():
            if name == title:
                listed.extend(paths)
            elif isinstance(listed, list):
                _fill(listed, title, paths)


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the site."""
    from mkdocs.structure.files import File  # noqa: PLC0415  (tests import this file without mkdocs)

    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Insert the names of the errata's tests and typeset the formulas."""
    markdown = with_formulas(with_test_names(markdown) if page.file.src_uri == "explanation/errata.md" else markdown)
    return with_indices(markdown) if page.file.src_uri.removesuffix(".md") in FORMULAS else markdown
