"""Pages made from the sources at build time: one per algorithm, their table, the gallery, the reference, the changelog.

The sources are parsed, never run, so that building the pages needs no compiler. A new file in `algorithms/` or
`gallery/` has its page without a change here.
"""

import ast
import html
import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
ALGORITHMS = ROOT / "src" / "gaptron" / "algorithms"
GALLERY = ROOT / "docs" / "gallery"
PUBLIC = (
    "gaptron",
    "gaptron.features",
    "gaptron.abstention",
    "gaptron.river",
    "gaptron.streams",
    "gaptron.logged",
    "gaptron.client",
)
CARD_WORDS = {
    "paper": "Paper",
    "feedback": "Feedback",
    "losses": "Losses",
    "time": "Time per round",
    "memory": "Memory",
    "regret_full": "Regret, full information",
    "regret_bandit": "Regret, bandit",
    "takes": "Also takes",
}
TAKES = {"advice": "advice", "among": "available labels", "rewards": "rewards in [0, 1]"}  # flags of a card


class Field(NamedTuple):
    """One field of a tuple or dataclass."""

    name: str
    kind: str
    meaning: str


class Setting(NamedTuple):
    """One parameter of an algorithm's `recommend`."""

    name: str
    kind: str
    default: str
    meaning: str


class Algorithm(NamedTuple):
    """What its file says of an algorithm."""

    name: str
    docstring: str
    card: dict[str, str]
    settings: list[Setting]
    fixed: list[Field]  # settings the learner fills in from the problem
    notes: list[Field]
    theory: dict[str, str]  # docstrings of recommend, theorem, bound, excused


# --- markdown ---------------------------------------------------------------------------------------------


def prose(text: str) -> str:
    """Words as markdown: formulas keep their stars and underscores, code its backticks."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_\[\]<>\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def cell(text: str) -> str:
    """Words for a table's cell."""
    return prose(text).replace("|", r"\|").replace("\n", " ") or "–"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table of cells that are markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


BLOCKS = {"    >>> ": "pycon", "    @": "bibtex"}  # how an indented block begins, and what it is written in


def body(docstring: str) -> str:
    """A docstring as markdown: its indented parts are blocks of text, `Args:` is a table."""
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


def names() -> dict[str, str]:
    """The names users type, and the files behind them."""
    tree = ast.parse((ALGORITHMS / "__init__.py").read_text(encoding="utf-8"))
    known: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "NAMES":
            known = ast.literal_eval(node.value)
    files = {path.stem for path in [*ALGORITHMS.glob("*.py"), *ALGORITHMS.glob("[a-z]*/")]} - {"__init__"}
    return known | {file.replace("_", "-"): file for file in sorted(files - set(known.values()))}


def algorithms() -> list[Algorithm]:
    """All of them, by name."""
    return [_algorithm(name, _files(file)) for name, file in sorted(names().items())]


def _files(file: str) -> list[Path]:
    """The file of an algorithm, or those of its folder, the one that declares it first."""
    if (ALGORITHMS / f"{file}.py").exists():
        return [ALGORITHMS / f"{file}.py"]
    return sorted((ALGORITHMS / file).glob("*.py"))


def _algorithm(name: str, paths: list[Path]) -> Algorithm:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    trees = [ast.parse(text) for text in texts]
    tree = trees[0]
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assigned = {  # those of the first file win
        getattr(node.targets[0], "id", ""): (node, text.splitlines()[node.lineno - 1])
        for text, part in zip(reversed(texts), reversed(trees))
        for node in part.body
        if isinstance(node, ast.Assign)
    }
    fields = _fields_of_settings(_settings_classes(tree), paths)
    settings = _settings(functions["recommend"], {field.name: field for field in fields})
    chosen = {setting.name for setting in settings}
    card: dict[str, str] = {}
    call = assigned["CARD"][0].value
    assert isinstance(call, ast.Call)
    for keyword in call.keywords:
        card[str(keyword.arg)] = _words(keyword.value)
    card["takes"] = ", ".join(word for flag, word in TAKES.items() if card.get(flag) == "True")
    note_node, line = assigned["NOTES"]
    noted, comment = ast.literal_eval(note_node.value), _comment(line)
    return Algorithm(
        name,
        ast.get_docstring(tree) or "",
        card,
        settings,
        [field for field in fields if field.name not in chosen],
        [Field(note, "float", comment if len(noted) == 1 else "") for note in noted],
        {
            part: ast.get_docstring(functions[part]) or ""
            for part in ("recommend", "theorem", "bound", "excused")
            if part in functions
        },
    )


def _settings_classes(tree: ast.Module) -> set[str]:
    found = {
        str(getattr(node.value.args[0], "id", ""))
        for node in tree.body
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", "") == "algorithm"
    }
    if not found:
        raise ValueError("an algorithm's file ends with algorithm(Settings, decide, learn)")
    return found


def _fields_of_settings(classes: set[str], paths: list[Path]) -> list[Field]:
    """The fields of the settings tuples, each once."""
    found: dict[str, Field] = {}
    for path in paths:
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and node.name in classes:
                found |= {field.name: field for field in fields_of(node, source.splitlines())}
    return list(found.values())


def fields_of(node: ast.ClassDef, lines: list[str]) -> list[Field]:
    """The annotated fields of a class, with the comments beside them."""
    return [
        Field(item.target.id, ast.unparse(item.annotation).strip('"'), _comment(lines[item.lineno - 1]))
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_")
    ]


def _settings(recommend: ast.FunctionDef, fields: dict[str, Field]) -> list[Setting]:
    parameters = recommend.args.args[1:] + recommend.args.kwonlyargs
    defaults = [*recommend.args.defaults, *recommend.args.kw_defaults]
    found = []
    for parameter, default in zip(parameters, defaults, strict=True):
        value = "None" if default is None else ast.unparse(default)
        kind = ast.unparse(parameter.annotation).removesuffix(" | None") if parameter.annotation else ""
        field = fields.get(parameter.arg)
        found.append(
            Setting(
                parameter.arg,
                kind,
                "the theorem's" if value == "None" else value.replace("'", '"'),
                field.meaning if field else "",
            )
        )
    return found


def _comment(line: str) -> str:
    return re.sub(r"\s+", " ", line.partition("#")[2]).strip()


def _words(node: ast.expr) -> str:
    """A card's entry in the words users type: Loss.SMOOTH_HINGE is smooth-hinge."""
    if isinstance(node, ast.Tuple):
        return ", ".join(_words(item) for item in node.elts)
    if isinstance(node, ast.Attribute):
        return node.attr.lower().replace("_", "-")
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node)


def algorithm_page(algorithm: Algorithm) -> str:
    """One algorithm's page."""
    title, _, rest = algorithm.docstring.partition("\n")
    parts = [f"# {algorithm.name}\n", f"**{prose(title)}**\n", body(rest)]
    facts = [[word, cell(algorithm.card[key])] for key, word in CARD_WORDS.items() if algorithm.card.get(key)]
    parts += ["## At a glance\n", table(["Name", f"`{algorithm.name}`"], facts)]
    parts.append("## Settings\n")
    if algorithm.settings:
        parts.append(f'Pass them by name: `Learner("{algorithm.name}", ..., {algorithm.settings[0].name}=...)`.\n')
        rows = [[f"`{s.name}`", cell(s.kind), cell(s.default), cell(s.meaning)] for s in algorithm.settings]
        parts.append(table(["setting", "type", "default", "meaning"], rows))
    else:
        parts.append("None.\n")
    if algorithm.theory.get("recommend"):
        parts.append("Defaults: " + body(algorithm.theory["recommend"]))
    if algorithm.fixed:
        named = "; ".join(
            f"`{field.name}`" + (f" ({prose(field.meaning)})" if field.meaning else "") for field in algorithm.fixed
        )
        parts.append(f"Filled in by the learner, from the problem: {named}.\n")
    if algorithm.theory.get("bound"):
        parts += ["## Bound\n", body(algorithm.theory["bound"])]
    if "excused" in algorithm.theory:
        parts.append("Rounds left out of the comparator's loss: " + body(algorithm.theory["excused"]))
    if algorithm.notes:
        parts.append("## Notes in a trace\n")
        parts.append(table(["note", "meaning"], [[f"`{note.name}`", cell(note.meaning)] for note in algorithm.notes]))
    return "\n".join(parts)


def algorithm_index(found: list[Algorithm]) -> str:
    """The table of all algorithms."""
    head = ["algorithm", "paper", "feedback", "losses", "time", "regret, full", "regret, bandit", "also takes"]
    keys = ["paper", "feedback", "losses", "time", "regret_full", "regret_bandit", "takes"]
    rows = [[f"[{a.name}]({a.name}.md)", *(cell(a.card.get(key, "")) for key in keys)] for a in found]
    return (
        "# Algorithms\n\n"
        "One paper, one file, one page. *Regret* is what the proved bound on the expected mistakes adds to the loss "
        "L_T(U) of the best linear rule U; D bounds ‖U‖. Letters: [notation](../notation.md). "
        "Which to take: [how to choose](../choose.md).\n\n" + table(head, rows)
    )


# --- gallery ----------------------------------------------------------------------------------------------


class Example(NamedTuple):
    """One file of the gallery, and what it printed when the pictures were last drawn."""

    name: str
    title: str
    words: str  # markdown
    code: str
    output: str


def gallery() -> list[Example]:
    """All of them, by name."""
    return [_example(path) for path in sorted(GALLERY.glob("*.py"))]


def _example(path: Path) -> Example:
    source = path.read_text(encoding="utf-8")
    first = ast.parse(source).body[0]
    title, _, words = inspect.cleandoc(ast.get_docstring(ast.parse(source)) or "").partition("\n")
    code = "\n".join(source.splitlines()[first.end_lineno :]).strip()
    return Example(path.stem, title, words.strip(), code, path.with_suffix(".txt").read_text(encoding="utf-8"))


def example_page(example: Example) -> str:
    """One example's page: words, picture, output, code."""
    return (
        f"# {example.title}\n\n{example.words}\n\n![{example.title}](../img/gallery/{example.name}.png)\n\n"
        f"It prints\n\n```text\n{example.output}```\n\n## The code\n\n"
        f"The file: [{example.name}.py]({example.name}.py).\n\n```python\n{example.code}\n```\n"
    )


def gallery_index(found: list[Example]) -> str:
    """The examples' pictures and first words."""
    parts = [
        "# Gallery\n",
        "Short programs that run as they stand, each with the picture it draws and the numbers it prints. Their data "
        "are made on the spot, with another seed than the learner's: if both drew the same numbers, the learner could "
        "look lucky, or cursed, beyond reason.\n",
    ]
    for example in found:
        head = example.words.split("\n\n")[0]
        picture = f"[![{example.title}](../img/gallery/{example.name}.png){{ width=320 }}]({example.name}.md)"
        parts.append(f"## [{example.title}]({example.name}.md)\n\n{picture}\n\n{head}\n")
    return "\n".join(parts)


# --- reference --------------------------------------------------------------------------------------------


def public(module: str) -> list[str]:
    """The names in a module's `__all__`."""
    path = ROOT / "src" / module.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return sorted(ast.literal_eval(node.value))
    raise ValueError(f"{source} has no __all__")


def api_page() -> str:
    """Every public name; mkdocstrings puts its signature and docstring there."""
    parts = ["# Reference\n", "Made from the docstrings. Whatever is not on this page may change at any time.\n"]
    for module in PUBLIC:
        parts += [f"## {module}\n", *(f"::: {module}.{name}\n" for name in public(module))]
    errors = "::: gaptron.errors\n    options:\n      members: false\n      show_root_heading: false\n"
    return "\n".join([*parts, "## The tree of errors\n", errors])


# --- errata -----------------------------------------------------------------------------------------------


def errata_tests() -> list[str]:
    """The tests that show the errata; none while there is no such file."""
    path = ROOT / "tests" / "theory" / "test_errata.py"
    if not path.exists():
        return []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_e")]


def with_test_names(markdown: str) -> str:
    """`test_e01_*` becomes the names of the tests that begin so."""
    found = errata_tests()

    def named(match: re.Match[str]) -> str:
        full = [name for name in found if name.startswith(match[1])]
        return "<br>".join(f"`{name}`" for name in full) or match[0]

    return re.sub(r"`(test_e\d\d_)\*`", named, markdown)


# --- formulas ---------------------------------------------------------------------------------------------


def with_formulas(markdown: str) -> str:
    """Blocks of TeX become MathML, which browsers draw by themselves: no script, no font, no network."""
    from latex2mathml.converter import convert  # noqa: PLC0415  (the tests read this file without it)

    def drawn(match: re.Match[str]) -> str:
        words = html.escape(" ".join(match[1].split()), quote=True)
        parts = (convert(part, display="block") for part in re.split(r"\\qquad", match[1].strip()))
        return f'<div class="formula" data-tex="{words}">{"".join(parts)}</div>'

    return re.sub(r"^```math\n(.*?)\n```$", drawn, markdown, flags=re.M | re.S)


FORMULAS = ("abstention", "advised", "answers", "errata", "frugal", "notation", "observed", "theory")
# A letter, perhaps with a mark or a prime, or a short word; then _ or ^ and an index of one letter, or in braces: x_t,
# p̃_y, y\*_t, z_y\*, κ_vR², a_min, Λ_{T−1}, ℓ^y.
_BASE = r"(?:(?<![a-z_])[^\W\d_]|\b(?:gap|mask|max|min))[\u0302-\u0304]?(?:'|\\\*|\*)*|(?<=\))"
_INDEX = re.compile(rf"({_BASE})([_^])(\{{[^}}\n]+\}}|min|max|[^\W\d_]\u0303?(?:\\\*)?|\d)")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`|<div class=\"formula\".*?</div>|\]\([^)]*\))", re.M | re.S)


def with_indices(markdown: str) -> str:
    """Indices in the words of a page that speaks of theory are set lower or higher: x_t, ℓ^y. Code stays as it is."""
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
    """Every made page, by its path."""
    found = algorithms()
    made = {"algorithms/index.md": algorithm_index(found)}
    made |= {f"algorithms/{algorithm.name}.md": algorithm_page(algorithm) for algorithm in found}
    examples = gallery()
    made["gallery/index.md"] = gallery_index(examples)
    made |= {f"gallery/{example.name}.md": example_page(example) for example in examples}
    made["api.md"] = api_page()
    changelog = ROOT / "CHANGELOG.md"
    if changelog.exists():
        made["changelog.md"] = changelog.read_text(encoding="utf-8")
    return made


def on_config(config: Any) -> Any:
    """Put the made pages into the navigation."""
    made = pages()
    shelf = [path for path in made if path.startswith("algorithms/")]
    wall = [path for path in made if path.startswith("gallery/")]
    start, *rest = config.nav
    config.nav = [start, {"Gallery": wall}, *rest, {"Algorithms": shelf}, {"Reference": "api.md"}]
    if "changelog.md" in made:
        config.nav.append({"Changelog": "changelog.md"})
    config.watch = [*config.watch, str(ROOT / "src" / "gaptron"), str(GALLERY)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the made pages."""
    from mkdocs.structure.files import File  # noqa: PLC0415  (the tests read this file without mkdocs)

    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Write out the names of the errata's tests, and draw the formulas."""
    markdown = with_formulas(with_test_names(markdown) if page.file.src_uri == "errata.md" else markdown)
    return with_indices(markdown) if page.file.src_uri.removesuffix(".md") in FORMULAS else markdown
