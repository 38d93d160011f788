"""Generate the pages of measured results from the files in docs/results/data.

A file is JSON and holds what was measured: `title`, `command`, `date`, `version`, `processor`, and either `tables`, the
rankings of a comparison, which `scripts/results` writes, or `sections`, whose parts are text and tables. `words` is an
introduction.
"""

import json
from pathlib import Path
from typing import Any

from gaptron.experiments.task import version

DATA = Path(__file__).parent / "results" / "data"
FEEDBACK = {"full": "Full information", "bandit": "Bandit feedback"}  # others are feedback graphs
COMPARISON = (
    "Errors are in per cent. *Behind* is the difference to the leader, paired by seed, with its 95 % interval over "
    "seeds. *Tuned* is the best of a grid, chosen in hindsight and stream by stream, which no learner can do.\n"
)


def pages() -> dict[str, str]:
    """Every page of results and their list, by path."""
    reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*.json"))}
    return {"results/index.md": index(reports)} | {f"results/{name}.md": page(one) for name, one in reports.items()}


def is_current(report: dict[str, Any]) -> bool:
    """Whether the algorithms have the sources that the report was measured with."""
    return bool(report["version"] == version())


def page(report: dict[str, Any]) -> str:
    """The page of one file."""
    parts = [f"# {report['title']}\n", measured(report)]
    if not is_current(report):
        parts.append(OLDER)
    parts.append(f"To repeat it:\n\n```bash\n{report['command']}\n```\n")
    parts += [report["words"] + "\n"] if "words" in report else []
    if "tables" in report:
        parts += [COMPARISON, *(_comparison(*entry) for entry in report["tables"].items())]
    for section in report.get("sections", []):
        parts += [f"## {section['title']}\n"] if section["title"] else []
        parts += [_table(**part) if isinstance(part, dict) else part + "\n" for part in section["parts"]]
    return "\n".join(parts)


OLDER = (
    '!!! note "Measured with an earlier version"\n'
    "    The algorithms, or the libraries below them, have changed since. Figures of the present version may differ.\n"
)


def measured(report: dict[str, Any]) -> str:
    """One sentence: when, with which version, on which processor."""
    size = f", {report['seeds']} seeds, {report['runs']:,} runs" if "runs" in report else ""
    return f"Measured on {report['date']} with gaptron {report['version']}; processor: {report['processor']}{size}.\n"


def index(reports: dict[str, dict[str, Any]]) -> str:
    """The list of all results with what they were measured with."""
    rows = [
        [
            f"[{report['title']}]({name}.md)",
            report["question"],
            report["date"].replace("-", "\u2011"),  # hyphens at which a line does not break
            "the present one" if is_current(report) else f"an earlier one, {report['version']}",
        ]
        for name, report in sorted(reports.items(), key=lambda item: item[1]["date"], reverse=True)
    ]
    lines = [["result", "question", "date", "version"], ["---"] * 4, *rows]
    return INDEX + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


INDEX = """# Measured results

Here you can look up how many mistakes each algorithm makes, on which data others win, and how fast it is. Every page
names the date, the version, the processor and the command, and is generated from a file in `docs/results/data`. A
version with a hash is that of the sources and libraries that a run depends on: `gaptron compare` computes it, and
a page says if it is not that of this site.

To measure on your own data: [compare](../how-to/compare.md).

"""


def _comparison(feedback: str, rows: list[dict[str, Any]]) -> str:
    streams = list(rows[0]["streams"])
    standing = [
        [row["algorithm"], f"{row['error']:.2f}", _behind(row), f"{row['first']} of {len(streams)}"] for row in rows
    ]
    errors = [[row["algorithm"], *(_error(row, stream) for stream in streams)] for row in rows]
    return "\n".join(
        [
            f"## {FEEDBACK.get(feedback, f'Feedback graph: {feedback}')}\n",
            _table(["algorithm", "error %", "behind", "first on"], standing),
            "Stream by stream:\n",
            _table(["algorithm", *streams], errors),
        ]
    )


def _behind(row: dict[str, Any]) -> str:
    if not row["behind"]:
        return ""
    return f"{row['behind']:+.2f}" + (f" ± {row['interval']:.2f}" if row["interval"] is not None else "")


def _error(row: dict[str, Any], stream: str) -> str:
    return f"{row['streams'][stream]:.2f}" if row["streams"].get(stream) is not None else ""


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
