"""The report as a file: everything is there, nothing is fetched, and no name can break out of its cell."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from gaptron.errors import InputError
from gaptron.experiments.summary import summarize
from gaptron.experiments.task import GRID
from gaptron.report.compare import row_figures, write
from gaptron.report.compare.curves import spread
from gaptron.report.compare.figure import format_tick, inline
from gaptron.report.compare.tuning import grid_by_stream
from gaptron.report.theme import GREY, MARKERS, PAPER, PREFERRED, assign_colours
from tests.results import failure, grid, many, result

STREAMS = ["synsep", "digits", "usps", "letter", "vowel", "covtype"]
ALGORITHMS = ["frugal-gaptron", "banditron", "a <b>bold</b> one"]
HOSTILE = "</table><script>alert('x')</script> $x_1^2$ & \"co\""
VOID = {"meta", "link", "br", "path", "use", "img", "rect"}


class Page(HTMLParser):
    """What a page holds: texts of cells by table, ids, links, labels of pictures."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.alts, self.words = [], [], [], [], []
        self.tables, self.heads, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in values:
            self.ids.append(values["id"])
        self.links += [values[name] for name in ("href", "src", "xlink:href") if name in values]
        if values.get("role") == "img":
            self.alts.append(values["aria-label"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            assert tag == "td" or values.get("scope") == "col"
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return "".join(self.words)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A complete one: six streams, one with a hostile name, a grid, bounds, and a failure."""
    streams = [*STREAMS[:-1], HOSTILE]
    results = many(streams, ALGORITHMS, seeds=2, tuned=("banditron",))
    results += many(["digits"], ["frugal-gaptron", "perceptron"], seeds=1, feedback="full")
    results.append(failure("exp4", stream=HOSTILE, seed=1))
    folder = tmp_path_factory.mktemp("report")
    return write(results, folder, title="Tom & <Jerry>", plan="seeds = 2  # <plan>", command="gaptron compare 'x>y'")


@pytest.fixture(scope="module")
def page(report):
    return Page(report.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_tags_are_closed_and_ids_are_used_once(page):
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))


def test_every_stream_algorithm_and_number_is_there(page):
    ranking = page.tables[2]  # after the failures and the ranking with full information
    assert ranking[0][:4] == ["#", "algorithm", "error, %", "behind, points"]
    assert [row[1] for row in ranking[1:]] == ["frugal-gaptron", "banditron tuned", "banditron", "a <b>bold</b> one"]
    assert ranking[1][3] == "leads" and ranking[2][3].startswith("+")
    for stream in [*STREAMS[:-1], HOSTILE]:
        assert any(stream in row for table in page.tables for row in table) or stream in page.text
    words = page.text
    assert "gamma=0.1" in words and "Theorem 1" in words and "vacuous: exceeds the rounds" in words
    assert "0.1.0+feed" in words and "hash of synsep" in words and "seeds = 2  # <plan>" in words


def test_the_observed_evidence_is_shown_for_bandit_runs_only(page):
    heads = [table[0] for table in page.tables if "certificate Λ" in table[0]]
    assert [head[-1] for head in heads] == ["certificate Λ", "observed: minimum log loss of any rule"]
    assert all(row[-1] == "12.5" for table in page.tables if table[0][-1] == heads[1][-1] for row in table[1:])
    assert "no linear rule of norm at most 20/X" in page.text


def test_where_the_best_reward_is_known_its_share_is_shown_in_descending_order(tmp_path):
    runs = [
        result(name, stream, seed, reward=earned + 10.0 * seed, best_reward=200.0, rate=0.9)
        for name, earned in (("banditron", 50.0), ("squarecb", 100.0))
        for stream in ("clicks", "more clicks")
        for seed in (0, 1)
    ]
    runs += [result(name, "digits") for name in ("banditron", "squarecb")]  # without rewards
    tables = Page(write(runs, tmp_path).read_text(encoding="utf-8")).tables
    table = next(t for t in tables if t[0] == ["algorithm", "clicks", "more clicks", "mean"])
    assert [row[0] for row in table[1:]] == ["squarecb", "banditron"]
    assert table[1][1].startswith("52.50 ±") and table[1][3] == "52.50"


@pytest.mark.parametrize(("bound", "vacuous"), [(999.0, False), (1000.0, True), (1001.0, True)])
def test_a_bound_of_as_many_mistakes_as_rounds_is_vacuous(bound, vacuous, tmp_path):
    """A hollow dot in the figure, and the words in the table."""
    (summary,) = summarize([result("perceptron", bound={"value": bound, "theorem": "Theorem 1"}, rate=0.1)])
    figure = row_figures.shares(summary, assign_colours({"bandit": ["perceptron"]}))
    (dot,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert (dot.get_markerfacecolor() == PAPER.light) == vacuous and dot.get_color() != PAPER.light
    assert dot.get_xdata()[0] == pytest.approx(100.5 / bound)
    page = Page(
        write([result("perceptron", bound={"value": bound, "theorem": "Theorem 1"})], tmp_path).read_text("utf-8")
    )
    (row,) = [row for table in page.tables for row in table if row[4:5] == [f"{100.5 / bound:.1%}"]]
    assert row[5] == ("vacuous: exceeds the rounds" if vacuous else "Theorem 1")


def test_the_headline_states_the_winner_its_lead_and_the_interval(page):
    assert re.search(
        r"frugal-gaptron makes the fewest mistakes on 6 of 6 streams, with an error of 7\.\d\d% over all streams; "
        r"the next, banditron tuned, is \d\.\d\d ± \d\.\d\d points behind \(95%, 2 seeds\)",
        page.text,
    )


def test_failures_are_listed(page):
    (line,) = page.tables[0][1:]
    assert line[2] == "exp4" and line[-1] == "MemoryError: no memory for W"
    assert "1 of the runs failed" in page.text
    assert all("exp4" not in row for table in page.tables[1:] for row in table)


def test_the_sections_are_in_order(page):
    wanted = ["failed", "ranking", "streams", "curves", "bounds", "tuning", "time", "ranks", "reproduce"]
    assert [i for i in page.ids if i in wanted] == wanted


def test_every_figure_is_on_the_page_and_in_two_files(report, page):
    names = [link[8:-4] for link in page.links if link.endswith(".svg")]
    assert len(names) == len(page.alts) == page.tags.count("svg")
    both = {f"{kind}-{word}" for kind in ("behind", "curves", "rates", "bounds", "time") for word in ("full", "bandit")}
    assert set(names) == both | {"tuning-bandit", "tuning-bandit-1", "ranks-bandit"}
    assert sorted(p.name for p in (report.parent / "figures").iterdir()) == sorted(
        f"{name}.{kind}" for name in names for kind in ("svg", "pdf")
    )
    for name in names:
        assert (report.parent / f"figures/{name}.pdf").read_bytes().startswith(b"%PDF")
        assert name in page.ids


def test_nothing_is_fetched(report, page):
    text = report.read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text
    assert all(re.match(r"(#|figures/|data:,$)", link) for link in page.links)
    assert "@import" not in text and not re.search(r"url\((?!#)", text)


def test_a_hostile_name_stays_a_name(report, page):
    text = report.read_text(encoding="utf-8")
    assert text.count("<script") == 1 and "<b>" not in text
    assert HOSTILE in "".join(page.words)
    assert page.text.count("Tom & <Jerry>") == 2  # title and heading


def test_colours_follow_the_page(report):
    text = report.read_text(encoding="utf-8")
    drawn = text[text.index("</style>") :].lower()
    assert "var(--blue)" in drawn and "#0072b2" not in drawn
    assert "#0072b2" in (report.parent / "figures/curves-full.svg").read_text().lower()


def test_the_same_results_make_the_same_bytes(tmp_path):
    results = many(["s"], ["gaptron", "frugal-gaptron"], seeds=1)
    first, second = (write(results, tmp_path / word) for word in "ab")
    assert first.read_bytes() == second.read_bytes()
    for path in (tmp_path / "a/figures").iterdir():
        assert path.read_bytes() == (tmp_path / "b/figures" / path.name).read_bytes()


def test_a_new_report_leaves_no_figure_of_the_old_one(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/mine.svg").write_text("<svg/>")
    write([result("a", feedback="full"), result("b", feedback="full")], tmp_path)
    assert (tmp_path / "figures/curves-full.pdf").exists()
    write([failure("a", feedback="full")], tmp_path)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["mine.svg"]


def test_the_smallest_report_names_what_is_missing(tmp_path):
    text = write([result("a"), result("b", rate=0.2)], tmp_path).read_text(encoding="utf-8")
    assert "one seed: no interval" in text
    assert "too few for a test" in text
    assert "not computed" in text  # no bound
    assert 'id="tuning"' not in text


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "results",
    [
        [result("a", rate=0.0), result("b", rate=0.0)],  # nothing on a log axis
        [result("alone")],
        [failure("a"), failure("b")],
        [failure("a"), result("b")],
        [result("a", curve=None, seconds=None), result("b", curve=None, seconds=None)],
        [result("a", rounds=1, mistakes=1, curve={"rounds": [1.0], "mistakes": [1.0], "expected": [1.0]})],
        [result("a", "s"), result("b", "r"), grid("b", 0.1, stream="r")],
        [result("a", role="grid", tuned="kind", settings={"kind": word}, seed=s) for word in "xy" for s in (0, 1)],
        [grid("a", 0.0), grid("a", 1.0), result("a", bound={"value": 0.0, "theorem": "none at all"})],
        [result("a", settings={"graph": [[1, 0], [0, 1]]}, feedback="a/b: [x]"), result("b", feedback="a/b: [x]")],
    ],
    ids=[
        "flawless",
        "alone",
        "all failed",
        "one left",
        "no curves",
        "one round",
        "strangers",
        "words",
        "zero",
        "graph",
    ],
)
def test_odd_comparisons_are_reported_too(results, tmp_path):
    page = Page(write(results, tmp_path).read_text(encoding="utf-8"))
    assert page.open == [] and "reproduce" in page.ids


def test_no_results_are_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(InputError, match="no results"):
        write([], tmp_path / "new")
    assert not (tmp_path / "new").exists()


# --- components ---


def test_an_algorithm_has_its_colour_everywhere_and_algorithms_in_one_figure_differ():
    crowd = ["zeta", "frugal-gaptron", "gaptron", "soba", *(f"x{i}" for i in range(9))]
    chosen = assign_colours({"full": ["perceptron", "arow", "zeta"], "bandit": crowd})
    assert chosen["frugal-gaptron"] is PREFERRED["frugal-gaptron"]
    there = [chosen[name] for name in crowd if chosen[name] is not GREY]
    assert len(there) == len(set(there)) == 6 and PREFERRED["advised-gaptron"] not in there  # the default's is its own
    assert chosen["zeta"] is not GREY and chosen["x8"] is GREY
    assert len(set(MARKERS.values())) == len(MARKERS)
    everyone = assign_colours({"bandit": list(PREFERRED)})  # more than there are colours
    there = [colour for colour in everyone.values() if colour is not GREY]
    assert len(there) == len(set(there)) == 7


def test_labels_are_moved_apart():
    assert spread([0.1, 0.5, 0.9]) == [0.1, 0.5, 0.9]
    moved = spread([0.9, 0.9, 0.9, 0.95])
    assert moved[-1] <= 0.97 and all(b - a > 0.0849 for a, b in pairwise(moved))
    assert spread([]) == []


@pytest.mark.parametrize(
    ("number", "words"), [(0.05, "0.05"), (1, "1"), (5000, "5000"), (1e4, "10⁴"), (2e5, "2·10⁵"), (1e-3, "10⁻³")]
)
def test_numbers_on_a_log_axis(number, words):
    assert format_tick(number) == words


def test_a_drawing_becomes_an_element():
    svg = '<?xml?>\n<svg width="10pt" viewBox="0 0 10 5" xmlns="http://x"><metadata>http://y</metadata><g id="a"/>'
    svg += '<use xlink:href="#a" style="fill: #1b1b1f; clip-path: url(#a)"/></svg>'
    assert inline(svg, "f") == (
        '<svg viewBox="0 0 10 5" style="max-width: 14px"><g id="f-a"/>'
        '<use xlink:href="#f-a" style="fill: var(--ink); clip-path: url(#f-a)"/></svg>'
    )


def test_a_baseline_without_a_colour_of_its_own_does_not_borrow_the_defaults():
    crowd = ["advised-gaptron", "frugal-gaptron", "gaptron", "banditron", "soba", "confidit", "squarecb"]
    results = [
        *many(["s"], [*crowd, "newtron"], 2),
        *(grid("newtron", 2.0**-i, seed=k) for i in (1, 3) for k in (0, 1)),
    ]
    (summary,) = summarize(results)
    colours = assign_colours({"bandit": [standing.variant.algorithm for standing in summary.ranking]})
    (tuned,) = [variant for variant in summary.variants if variant.tuned]
    assert tuned.algorithm == "newtron" and colours["newtron"] is GREY
    (panel,) = grid_by_stream(summary, tuned, colours).axes
    assert panel.lines[0].get_color() not in {colours[name].light for name in crowd}


def test_every_run_is_listed_with_its_command_and_its_processor(tmp_path):
    runs = [replace(r, command=f"gaptron play s --seed {r.seed}", processor="Z80") for r in many(["s"], ["gaptron"], 3)]
    page = write(runs, tmp_path).read_text()
    assert all(f"gaptron play s --seed {seed}" in page for seed in range(3)) and "Z80" in page


def test_of_several_settings_with_the_same_first_value_the_best_is_drawn():
    runs = [
        result("newtron", role=GRID, settings={"gamma": gamma, "eta": eta}, tuned="gamma,eta", rate=rate)
        for gamma, eta, rate in ((0.1, 1.0, 0.3), (0.1, 2.0, 0.2), (0.1, 3.0, 0.25), (0.5, 1.0, 0.4))
    ]
    (summary,) = summarize(runs)
    (tuned,) = summary.variants
    (panel,) = grid_by_stream(summary, tuned, assign_colours({"bandit": ["newtron"]})).axes
    np.testing.assert_allclose(panel.lines[0].get_xydata(), [[0.1, 20.0], [0.5, 40.0]])
