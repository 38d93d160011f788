"""The sections of the page, in its order: their words, figures and tables."""

from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from gaptron.experiments.account import RADIUS
from gaptron.experiments.grouping import Arena, Variant, settings_text
from gaptron.experiments.ranks import ALPHA, FEWEST, Ranks, ranks
from gaptron.experiments.summary import Field
from gaptron.report.colours import Colour, palette
from gaptron.report.compare import critical, curves, row_figures, tuning
from gaptron.report.compare.elements import Cell, Part, Picture, Section, Table
from gaptron.report.compare.figure import save, shade
from gaptron.report.compare.wording import feedback, percent, points, several, slope, span
from gaptron.types import Feedback


def sections(summary: list[Field], folder: Path) -> list[Section]:
    """All of them that have something to say; their figures are written to the folder on the way."""
    there = [field for field in summary if field.ranking]
    colours = palette({field.feedback: [s.variant.algorithm for s in field.ranking] for field in there})
    maker = _Maker(folder, colours)
    makers = (
        (
            "ranking",
            "Ranking",
            "Error is mistakes a round, in per cent, averaged over seeds and then over streams. With full information "
            "the mistakes are the expected ones, Σ(1 − p(y)): exact, and free of the luck of the draws. Behind: the "
            "error minus the leader's, seed by seed on the same rows and the same draws, with a 95% t interval over "
            "seeds. It speaks of these streams, not of others. Tuned: the best setting of a grid (or the published "
            "one) on each stream, chosen after seeing the results. No one without hindsight could have had it.",
            maker.ranking,
        ),
        (
            "streams",
            "Stream by stream",
            "Error in per cent; the least of each stream is bold. Open a stream for intervals, counts and slopes.",
            maker.streams,
        ),
        (
            "earned",
            "What was earned",
            "Streams that say what each label is worth and which is the best: what was earned over all rounds, the "
            "first ones too, in per cent of what the best label of each round earned on the same draws.",
            maker.earned,
        ),
        (
            "curves",
            "Mistakes against rounds",
            "Both axes are logarithmic, so a power law is a straight line and its slope the exponent: 1 is a constant "
            "error rate, ½ is √T, 0 is no mistakes any more. Slopes are fitted seed by seed over the last nine tenths "
            "of the rounds. The line is the mean of the seeds, the band goes from the best seed to the worst. "
            "Algorithms with a grid are shown tuned. Below, the same as mistakes a round, which tells apart what "
            "lies on one line as sums.",
            maker.curves,
        ),
        (
            "bounds",
            "What theory promised",
            "Expected mistakes beside the bound the algorithm's theorem gives on the very stream played, for the best "
            "comparator in hindsight; means over the seeds for which it was worked out. A bound at or above the "
            "number of rounds says nothing yet. Observed, under bandit feedback: on the rounds of these runs no linear "
            f"rule of norm at most {RADIUS:g}/X, X the longest row, has less base-2 log loss; of mistakes it says "
            "nothing.",
            maker.bounds,
        ),
        (
            "tuning",
            "Error against the tuning parameter",
            "Every baseline with a grid. Where several settings were tried together, the others are at their best for "
            "each value of the first. Level lines are learners that were not tuned at all.",
            maker.tuning,
        ),
        (
            "time",
            "Time",
            "Seconds of playing alone: reading, preparing and compiling are outside the clock. Runs may have shared "
            "the machine; read it as an order of magnitude.",
            maker.time,
        ),
        (
            "ranks",
            "Do the streams agree?",
            "Here the streams are the sample. Each stream ranks the algorithms, 1 for the fewest mistakes; each "
            "algorithm stands here once, tuned if it has a grid. Bars join those whose average ranks lie within "
            "Nemenyi's critical difference at 5%: the streams do not tell them apart (Demšar 2006).",
            maker.ranks,
        ),
    )
    made = []
    for id_, heading, words, make in makers:
        parts = [part for part in (make(field) for field in there) if part is not None]
        if parts:
            made.append(Section(id_, heading, words, parts))
    return made


class _Maker(NamedTuple):
    """Makes the parts of the page and writes their figures."""

    folder: Path
    colours: dict[str, Colour]

    def picture(self, name: str, drawing: Any, alt: str, caption: str = "", quiet: bool = False) -> Picture:
        return Picture(name, alt, caption, Markup(save(drawing, self.folder, name)), quiet)

    def ranking(self, field: Field) -> Part:
        total = len(field.arenas)
        rows = []
        for place, s in enumerate(field.ranking, 1):
            lacking = f" (lacks {several(s.missing, 'run')})" if s.missing else ""
            rows.append(
                [
                    Cell(str(place), place),
                    _name(field, s.variant, lacking),
                    Cell(percent(s.error), s.error),
                    Cell("leads", 0.0) if place == 1 else Cell(points(s.behind), s.behind.mean if s.behind else None),
                    Cell(f"{s.wins} of {total}", s.wins),
                    _time(s.microseconds),
                    Cell(f"{s.streams} of {total}", s.streams),
                ]
            )
        head = ["#", "algorithm", "error, %", "behind, points", "first on", "µs a round", "streams played"]
        pictures = []
        if len(field.ranking) > 1:
            leader = field.names[field.ranking[0].variant]
            drawing = row_figures.behind(field, self.colours)
            pictures = [self.picture(f"behind-{_slug(field)}", drawing, f"How far each algorithm is behind {leader}")]
        words = []
        if all(s.behind is None or s.behind.half is None for s in field.ranking):
            words.append("There is one seed, or none that all streams share, so there are no intervals.")
        return Part(feedback(field.feedback), words, pictures, [Table("Ranking over all streams", head, rows)])

    def streams(self, field: Field) -> Part:
        tables = []
        if len(field.arenas) > 1:
            rows = []
            for s in field.ranking:
                cells = [_error(field, s.variant, arena) for arena in field.arenas]
                rows.append([_name(field, s.variant), *cells, Cell(percent(s.error), s.error)])
            head = ["algorithm", *(field.places[arena] for arena in field.arenas), "mean"]
            tables.append(Table("Error in per cent, a column a stream", head, rows))
        tables += [self._stream(field, arena) for arena in field.arenas]
        return Part(feedback(field.feedback), [], [], tables)

    def earned(self, field: Field) -> Part | None:
        shares = {
            (s.variant, arena): share
            for s in field.ranking
            for arena in field.arenas
            if (s.variant, arena) in field.runs and (share := field.share_of_best(s.variant, arena)) is not None
        }
        there = [arena for arena in field.arenas if any(arena is a for _, a in shares)]
        if not there:
            return None
        rows = []
        for s in field.ranking:
            mine = [shares.get((s.variant, arena)) for arena in there]
            mean = sum(share.mean for share in mine if share) / len(there) if all(mine) else None
            cells = [Cell(span(share), share.mean) if share else Cell("–", None) for share in mine]
            rows.append([_name(field, s.variant), *cells, Cell("–" if mean is None else percent(mean), mean)])
        rows.sort(key=lambda row: -(row[-1].value or 0.0))
        head = ["algorithm", *(field.places[arena] for arena in there), "mean"]
        return Part(feedback(field.feedback), [], [], [Table("Per cent of the best, a column a stream", head, rows)])

    def _stream(self, field: Field, arena: Arena) -> Table:
        exact = "expected (exact)" if field.feedback == "full" else "expected (estimate)"
        order = field.played(arena)
        rows = []
        for variant in order:
            runs = field.runs[variant, arena]
            rate, gap = field.error(variant, arena), field.difference(variant, order[0], arena)
            growth = field.slope(variant, arena)
            rows.append(
                [
                    _name(field, variant),
                    Cell(span(rate), rate.mean),
                    Cell("first", 0.0) if variant is order[0] else Cell(points(gap), gap.mean if gap else None),
                    _mean([r.mistakes for r in runs.values()]),
                    _mean([r.expected_mistakes for r in runs.values()], 1),
                    _mean([r.top_mistakes for r in runs.values()]),
                    Cell("–") if growth is None else Cell(slope(growth), growth.value),
                    _time(field.microseconds(variant, arena)),
                    Cell(_setting(field, variant, arena)),
                    Cell(str(len(runs)), len(runs)),
                ]
            )
        head = ["algorithm", "error, %", "behind, points", "mistakes", exact, "mistakes of the top label", "slope"]
        caption = (
            f"{field.places[arena]}: {arena.rounds:,} rounds, {arena.n_classes} classes, {arena.n_features:,} features"
        )
        return Table(caption, [*head, "µs a round", "setting", "seeds"], rows, quiet=len(field.arenas) > 1)

    def curves(self, field: Field) -> Part | None:
        if not any(result.curve for runs in field.runs.values() for result in runs.values()):
            return None
        drawing = curves.curves(field, self.colours)
        alt = f"Mistakes against rounds, {feedback(field.feedback).lower()}, a panel for each stream, log-log axes"
        rates = curves.curves(field, self.colours, rate=True)
        beside = f"Mistakes a round so far, {feedback(field.feedback).lower()}, a panel for each stream"
        pictures = [
            self.picture(f"curves-{_slug(field)}", drawing, alt),
            self.picture(f"rates-{_slug(field)}", rates, beside),
        ]
        return Part(feedback(field.feedback), [], pictures, [])

    def bounds(self, field: Field) -> Part | None:
        rows = []
        for arena in field.arenas:
            for variant in field.played(arena):
                if not variant.tuned:
                    rows.append(self._bound(field, variant, arena))
        if not rows:
            return None
        head = ["stream", "algorithm", "expected mistakes", "bound", "share used", "what it says", "certificate Λ"]
        if field.feedback == Feedback.BANDIT.word:
            head.append("observed: log loss of every rule at least")
        pictures = []
        if row_figures.bounded(field):
            drawing = row_figures.shares(field, self.colours)
            pictures = [self.picture(f"bounds-{_slug(field)}", drawing, "The share of its bound each algorithm used")]
        table = Table("Every algorithm beside its bound", head, rows, quiet=len(rows) > 12)
        return Part(feedback(field.feedback), [], pictures, [table])

    def _bound(self, field: Field, variant: Variant, arena: Arena) -> list[Cell]:
        runs, pair = list(field.runs[variant, arena].values()), field.bound(variant, arena)
        levels = [run.certificate["level"] for run in runs if run.certificate and "level" in run.certificate]
        level = _mean(levels, 1) if levels else Cell("–")
        start = [Cell(field.places[arena]), _name(field, variant)]
        last = [level]
        if field.feedback == Feedback.BANDIT.word:
            losses = [run.observed["least_loss"] for run in runs if run.observed and "least_loss" in run.observed]
            last.append(_mean(losses, 1) if losses else Cell("–"))
        if pair is None:
            why = next((run.bound_reason for run in runs if run.bound_reason), "not worked out")
            mistakes = _mean([run.expected_mistakes for run in runs], 1)
            return [*start, mistakes, Cell("none"), Cell("–"), Cell(why), *last]
        expected, bound = pair
        theorem = next(str(run.bound.get("theorem", "")) for run in runs if run.bound)
        says = Cell("exceeds the rounds: says nothing yet", None, "quiet") if bound >= arena.rounds else Cell(theorem)
        used = Cell(f"{expected / bound:.1%}", expected / bound) if bound > 0 else Cell("–")
        return [*start, Cell(f"{expected:,.1f}", expected), Cell(f"{bound:,.1f}", bound), used, says, *last]

    def tuning(self, field: Field) -> Part | None:
        drawn = tuning.drawable(field)
        if not drawn:
            return None
        pictures = []
        slug = _slug(field)
        if len(field.arenas) > 1:
            drawing = tuning.grids_over_streams(field, self.colours)
            alt = "Error against the tuning parameter of each baseline, mean over streams, each stream thin"
            pictures.append(self.picture(f"tuning-{slug}", drawing, alt))
        for i, variant in enumerate(drawn, 1):
            name = field.names[variant].removesuffix(" tuned")
            drawing = tuning.grid_by_stream(field, variant, self.colours)
            alt = f"Error of {name} against {variant.tuned}, a panel for each stream"
            many = len(field.arenas) > 1
            pictures.append(self.picture(f"tuning-{slug}-{i}", drawing, alt, f"{name}, stream by stream", quiet=many))
        return Part(feedback(field.feedback), [], pictures, [])

    def time(self, field: Field) -> Part | None:
        if not any(s.microseconds for s in field.ranking):
            return None
        drawing = row_figures.times(field, self.colours)
        picture = self.picture(f"time-{_slug(field)}", drawing, "Microseconds a round of each algorithm")
        return Part(feedback(field.feedback), [], [picture], [])

    def ranks(self, field: Field) -> Part | None:
        whole = {s.variant for s in field.ranking if s.streams == len(field.arenas)}
        variants = [variant for variant in field.at_their_best if variant in whole]
        if len(variants) < 2:
            return None
        ranking, names = ranks(field.table(variants)), [field.names[variant] for variant in variants]
        pictures = []
        if ranking.critical is not None:
            shades = [shade(self.colours, variant) for variant in variants]
            drawing = critical.critical_difference(names, shades, ranking)
            alt = "Average ranks on a line, with bars over algorithms that the streams cannot tell apart"
            pictures = [self.picture(f"ranks-{_slug(field)}", drawing, alt)]
        left_out = [field.names[variant] for variant in field.at_their_best if variant not in whole]
        words = [_verdict(ranking)]
        if left_out:
            words.append(f"Left out, because they lack streams: {', '.join(left_out)}.")
        return Part(feedback(field.feedback), words, pictures, [_rank_table(names, ranking)])


# --- words and cells ---------------------------------------------------------------------------------------


def _verdict(ranking: Ranks) -> str:
    if ranking.p is None:
        return (
            f"{several(ranking.streams, 'stream')}: too few for a test. At least {FEWEST} are needed before even "
            "winning on every one of them would be significant at 5%."
        )
    chance = "< 0.0001" if ranking.p < 1e-4 else f"= {ranking.p:.4f}"
    verdict = "so they are not all equal" if ranking.p < ALPHA else "so they may all be equal"
    timid = " With so few streams the critical difference is wide." if ranking.streams < 10 else ""
    return f"Friedman's test over {ranking.streams} streams (Iman and Davenport's form): p {chance}, {verdict}.{timid}"


def _rank_table(names: list[str], ranking: Ranks) -> Table:
    head = ["algorithm", "average rank"]
    if ranking.versus_best is not None:
        head.append("p against the best (Wilcoxon, Holm)")
    rows = []
    for column in ranking.average.argsort(kind="stable"):
        row = [Cell(names[column]), Cell(f"{ranking.average[column]:.2f}", float(ranking.average[column]))]
        if ranking.versus_best is not None:
            p = float(ranking.versus_best[column])
            row.append(Cell("–") if p != p else Cell(f"{p:.4f}", p))
        rows.append(row)
    return Table("Average ranks", head, rows, quiet=ranking.critical is not None)


def _setting(field: Field, variant: Variant, arena: Arena) -> str:
    if not variant.tuned:
        return settings_text(variant.settings) or "published"
    best = field.grids[variant, arena].best
    if best.published:
        return "the published one"
    return settings_text(tuple(zip(variant.tuned.split(","), best.value, strict=True)))


def _name(field: Field, variant: Variant, remark: str = "") -> Cell:
    return Cell(field.names[variant] + remark, None, "tuned" if variant.tuned else "")


def _error(field: Field, variant: Variant, arena: Arena) -> Cell:
    if (variant, arena) not in field.runs:
        return Cell("–")
    error = field.error(variant, arena).mean
    best = field.error(field.played(arena)[0], arena).mean
    return Cell(percent(error), error, "best" if error == best else "")


def _mean(values: list[Any], digits: int = 0) -> Cell:
    known = [float(value) for value in values if value is not None]
    return Cell(f"{sum(known) / len(known):,.{digits}f}", sum(known) / len(known)) if known else Cell("–")


def _time(microseconds: float | None) -> Cell:
    return Cell("–") if microseconds is None else Cell(f"{microseconds:.3g}", microseconds)


def _slug(field: Field) -> str:
    """The feedback as part of a file's name."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in field.feedback) or "none"
