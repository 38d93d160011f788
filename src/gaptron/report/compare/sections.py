"""The sections of the page, in order: their texts, figures and tables."""

from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from gaptron.experiments.grouping import StreamInfo, Variant, settings_text
from gaptron.experiments.ranks import ALPHA, MIN_STREAMS, Ranks, ranks
from gaptron.experiments.summary import Summary
from gaptron.learner.describe import RADIUS
from gaptron.report.compare import critical_difference, curves, row_figures, tuning
from gaptron.report.compare.elements import Cell, Picture, Section, Subsection, Table
from gaptron.report.compare.figure import colour_of, save
from gaptron.report.compare.formatting import feedback_title, percent, plural, points, slope, with_interval
from gaptron.report.theme import Colour, assign_colours
from gaptron.types import Feedback


def sections(summaries: list[Summary], folder: Path) -> list[Section]:
    """Build the sections that have content, and write their figures to the folder."""
    summaries = [summary for summary in summaries if summary.ranking]
    colours = assign_colours(
        {summary.feedback: [s.variant.algorithm for s in summary.ranking] for summary in summaries}
    )
    builder = _Builder(folder, colours)
    builders = (
        (
            "ranking",
            "Ranking",
            "The error is the mistakes per round in per cent, averaged over seeds and then over streams. With full "
            "information it counts expected mistakes, Σ(1 − p(y)), which are exact and do not vary with the draws. "
            "Behind is the error minus the leader's, paired by seed on the same examples and the same draws, with a "
            "95% t interval over seeds; it holds for these streams, not for others. Tuned variants use the best "
            "setting of a grid (or the published one) on each stream, chosen in hindsight, which is not possible in "
            "practice.",
            builder.ranking,
        ),
        (
            "streams",
            "Stream by stream",
            "Error in per cent; the smallest of each stream is bold. Open a stream for intervals, counts and slopes.",
            builder.streams,
        ),
        (
            "rewards",
            "Rewards",
            "For streams with a reward for each label: the total reward over all rounds, including the first ones, in "
            "per cent of the reward of the best label of each round.",
            builder.rewards,
        ),
        (
            "curves",
            "Mistakes against rounds",
            "Both axes are logarithmic, so a power law is a straight line whose slope is the exponent: 1 is a constant "
            "error rate, ½ is √T, 0 means that mistakes have stopped. Slopes are fitted for each seed over the last "
            "nine tenths of the rounds. The line is the mean over seeds, and the band spans the best and the worst "
            "seed. Algorithms with a grid are shown tuned. The second figure shows mistakes per round, which separates "
            "lines that overlap in the first.",
            builder.curves,
        ),
        (
            "bounds",
            "Bounds",
            "Expected mistakes and the bound of the algorithm's theorem on the stream that was played, for the best "
            "comparator in hindsight; means over the seeds for which it was computed. A bound at or above the number "
            "of rounds is vacuous. The last column, under bandit feedback, is a lower bound that the observed feedback "
            f"proves: on these rounds no linear rule of norm at most {RADIUS:g}/X, with X the largest norm of an "
            "example, has a smaller base-2 log loss. It does not bound mistakes.",
            builder.bounds,
        ),
        (
            "tuning",
            "Error against the tuning parameter",
            "Every baseline with a grid. If several parameters were tried together, the others have their best values "
            "for each value of the first. Horizontal lines are algorithms without tuning.",
            builder.tuning,
        ),
        (
            "time",
            "Time",
            "The time of playing, without reading, preparing and compiling. Runs may have shared the machine, so only "
            "the order of magnitude is reliable.",
            builder.time,
        ),
        (
            "ranks",
            "Ranks over streams",
            "Here the streams are the sample. Each stream ranks the algorithms, with 1 for the fewest mistakes; each "
            "algorithm appears once, tuned if it has a grid. Bars join algorithms whose average ranks lie within "
            "Nemenyi's critical difference at 5%: they do not differ significantly (Demšar 2006).",
            builder.ranks,
        ),
    )
    built = []
    for id_, heading, introduction, build in builders:
        subsections = [part for part in map(build, summaries) if part is not None]
        if subsections:
            built.append(Section(id_, heading, introduction, subsections))
    return built


class _Builder(NamedTuple):
    """Builds the subsections of the page and writes their figures."""

    folder: Path
    colours: dict[str, Colour]

    def picture(self, name: str, drawing: Any, alt: str, caption: str = "", collapsed: bool = False) -> Picture:
        return Picture(name, alt, caption, Markup(save(drawing, self.folder, name)), collapsed)

    def ranking(self, summary: Summary) -> Subsection:
        total = len(summary.streams)
        rows = []
        for place, s in enumerate(summary.ranking, 1):
            missing = f" ({plural(s.missing, 'run')} missing)" if s.missing else ""
            rows.append(
                [
                    Cell(str(place), place),
                    _name(summary, s.variant, missing),
                    Cell(percent(s.error), s.error),
                    Cell("leads", 0.0) if place == 1 else Cell(points(s.behind), s.behind.mean if s.behind else None),
                    Cell(f"{s.wins} of {total}", s.wins),
                    _time(s.microseconds),
                    Cell(f"{s.streams} of {total}", s.streams),
                ]
            )
        head = ["#", "algorithm", "error, %", "behind, points", "first on", "µs per round", "streams played"]
        pictures = []
        if len(summary.ranking) > 1:
            leader = summary.names[summary.ranking[0].variant]
            drawing = row_figures.behind(summary, self.colours)
            pictures = [self.picture(f"behind-{_slug(summary)}", drawing, f"How far each algorithm is behind {leader}")]
        paragraphs = []
        if all(s.behind is None or s.behind.half_width is None for s in summary.ranking):
            paragraphs.append(
                "There are no intervals, because there is only one seed, none common to all streams, or every run "
                "is the same."
            )
        return Subsection(
            feedback_title(summary.feedback), paragraphs, pictures, [Table("Ranking over all streams", head, rows)]
        )

    def streams(self, summary: Summary) -> Subsection:
        tables = []
        if len(summary.streams) > 1:
            rows = []
            for s in summary.ranking:
                cells = [_error(summary, s.variant, stream) for stream in summary.streams]
                rows.append([_name(summary, s.variant), *cells, Cell(percent(s.error), s.error)])
            head = ["algorithm", *(summary.stream_names[stream] for stream in summary.streams), "mean"]
            tables.append(Table("Error in per cent, one column per stream", head, rows))
        tables += [self._stream(summary, stream) for stream in summary.streams]
        return Subsection(feedback_title(summary.feedback), [], [], tables)

    def rewards(self, summary: Summary) -> Subsection | None:
        shares = {
            (s.variant, stream): share
            for s in summary.ranking
            for stream in summary.streams
            if (s.variant, stream) in summary.runs and (share := summary.share_of_best(s.variant, stream)) is not None
        }
        streams = [stream for stream in summary.streams if any(stream is a for _, a in shares)]
        if not streams:
            return None
        rows = []
        for s in summary.ranking:
            own = [shares.get((s.variant, stream)) for stream in streams]
            mean = sum(share.mean for share in own if share) / len(streams) if all(own) else None
            cells = [Cell(with_interval(share), share.mean) if share else Cell("–", None) for share in own]
            rows.append([_name(summary, s.variant), *cells, Cell("–" if mean is None else percent(mean), mean)])
        rows.sort(key=lambda row: -(row[-1].value or 0.0))
        head = ["algorithm", *(summary.stream_names[stream] for stream in streams), "mean"]
        return Subsection(
            feedback_title(summary.feedback),
            [],
            [],
            [Table("Per cent of the best reward, one column per stream", head, rows)],
        )

    def _stream(self, summary: Summary, stream: StreamInfo) -> Table:
        exact = "expected (exact)" if summary.feedback == "full" else "expected (estimate)"
        order = summary.variants_on(stream)
        rows = []
        for variant in order:
            runs = summary.runs[variant, stream]
            rate, gap = summary.error(variant, stream), summary.difference(variant, order[0], stream)
            growth = summary.slope(variant, stream)
            rows.append(
                [
                    _name(summary, variant),
                    Cell(with_interval(rate), rate.mean),
                    Cell("first", 0.0) if variant is order[0] else Cell(points(gap), gap.mean if gap else None),
                    _mean([r.mistakes for r in runs.values()]),
                    _mean([r.expected_mistakes for r in runs.values()], 1),
                    _mean([r.top_mistakes for r in runs.values()]),
                    Cell("–") if growth is None else Cell(slope(growth), growth.value),
                    _time(summary.microseconds(variant, stream)),
                    Cell(_setting(summary, variant, stream)),
                    Cell(str(len(runs)), len(runs)),
                ]
            )
        head = ["algorithm", "error, %", "behind, points", "mistakes", exact, "mistakes of the top label", "slope"]
        size = f"{stream.rounds:,} rounds, {stream.n_classes} classes, {stream.n_features:,} features"
        caption = f"{summary.stream_names[stream]}: {size}"
        return Table(caption, [*head, "µs per round", "setting", "seeds"], rows, collapsed=len(summary.streams) > 1)

    def curves(self, summary: Summary) -> Subsection | None:
        if not any(result.curve for runs in summary.runs.values() for result in runs.values()):
            return None
        drawing = curves.curves(summary, self.colours)
        alt = f"Mistakes against rounds, {feedback_title(summary.feedback).lower()}, one panel per stream, log-log axes"
        rates = curves.curves(summary, self.colours, rate=True)
        rate_alt = f"Mistakes per round so far, {feedback_title(summary.feedback).lower()}, one panel per stream"
        pictures = [
            self.picture(f"curves-{_slug(summary)}", drawing, alt),
            self.picture(f"rates-{_slug(summary)}", rates, rate_alt),
        ]
        return Subsection(feedback_title(summary.feedback), [], pictures, [])

    def bounds(self, summary: Summary) -> Subsection | None:
        rows = []
        for stream in summary.streams:
            for variant in summary.variants_on(stream):
                if not variant.tuned:
                    rows.append(self._bound(summary, variant, stream))
        if not rows:
            return None
        head = ["stream", "algorithm", "expected mistakes", "bound", "share used", "theorem or reason", "certificate Λ"]
        if summary.feedback == Feedback.BANDIT.word:
            head.append("observed: minimum log loss of any rule")
        pictures = []
        if row_figures.bounded(summary):
            drawing = row_figures.shares(summary, self.colours)
            pictures = [self.picture(f"bounds-{_slug(summary)}", drawing, "The share of its bound each algorithm used")]
        table = Table("Mistakes and bounds", head, rows, collapsed=len(rows) > 12)
        return Subsection(feedback_title(summary.feedback), [], pictures, [table])

    def _bound(self, summary: Summary, variant: Variant, stream: StreamInfo) -> list[Cell]:
        runs, pair = list(summary.runs[variant, stream].values()), summary.bound(variant, stream)
        levels = [run.certificate["level"] for run in runs if run.certificate and "level" in run.certificate]
        level = _mean(levels, 1) if levels else Cell("–")
        start = [Cell(summary.stream_names[stream]), _name(summary, variant)]
        last = [level]
        if summary.feedback == Feedback.BANDIT.word:
            losses = [run.observed["least_loss"] for run in runs if run.observed and "least_loss" in run.observed]
            last.append(_mean(losses, 1) if losses else Cell("–"))
        if pair is None:
            why = next((run.bound_reason for run in runs if run.bound_reason), "not computed")
            mistakes = _mean([run.expected_mistakes for run in runs], 1)
            return [*start, mistakes, Cell("none"), Cell("–"), Cell(why), *last]
        expected, bound = pair
        theorem = next(str(run.bound.get("theorem", "")) for run in runs if run.bound)
        reason = Cell("vacuous: exceeds the rounds", None, "quiet") if bound >= stream.rounds else Cell(theorem)
        used = Cell(f"{expected / bound:.1%}", expected / bound) if bound > 0 else Cell("–")
        return [*start, Cell(f"{expected:,.1f}", expected), Cell(f"{bound:,.1f}", bound), used, reason, *last]

    def tuning(self, summary: Summary) -> Subsection | None:
        drawn = tuning.drawable(summary)
        if not drawn:
            return None
        pictures = []
        slug = _slug(summary)
        if len(summary.streams) > 1:
            drawing = tuning.grids_over_streams(summary, self.colours)
            alt = "Error against the tuning parameter of each baseline, mean over streams, single streams as thin lines"
            pictures.append(self.picture(f"tuning-{slug}", drawing, alt))
        for i, variant in enumerate(drawn, 1):
            name = summary.names[variant].removesuffix(" tuned")
            drawing = tuning.grid_by_stream(summary, variant, self.colours)
            alt = f"Error of {name} against {variant.tuned}, one panel per stream"
            many = len(summary.streams) > 1
            pictures.append(
                self.picture(f"tuning-{slug}-{i}", drawing, alt, f"{name}, stream by stream", collapsed=many)
            )
        return Subsection(feedback_title(summary.feedback), [], pictures, [])

    def time(self, summary: Summary) -> Subsection | None:
        if not any(s.microseconds for s in summary.ranking):
            return None
        drawing = row_figures.times(summary, self.colours)
        picture = self.picture(f"time-{_slug(summary)}", drawing, "Microseconds per round of each algorithm")
        return Subsection(feedback_title(summary.feedback), [], [picture], [])

    def ranks(self, summary: Summary) -> Subsection | None:
        complete = {s.variant for s in summary.ranking if s.streams == len(summary.streams)}
        variants = [variant for variant in summary.best_variants if variant in complete]
        if len(variants) < 2:
            return None
        ranking, names = ranks(summary.table(variants)), [summary.names[variant] for variant in variants]
        pictures = []
        if ranking.critical is not None:
            line_colours = [colour_of(self.colours, variant) for variant in variants]
            drawing = critical_difference.draw(names, line_colours, ranking)
            alt = "Average ranks on a line, with bars that join algorithms within the critical difference"
            pictures = [self.picture(f"ranks-{_slug(summary)}", drawing, alt)]
        excluded = [summary.names[variant] for variant in summary.best_variants if variant not in complete]
        paragraphs = [_friedman_text(ranking)]
        if excluded:
            paragraphs.append(f"Not included, because streams are missing: {', '.join(excluded)}.")
        return Subsection(feedback_title(summary.feedback), paragraphs, pictures, [_rank_table(names, ranking)])


# --- texts and cells ---------------------------------------------------------------------------------------


def _friedman_text(ranking: Ranks) -> str:
    if ranking.p is None:
        return (
            f"{plural(ranking.streams, 'stream')}: too few for a test. With fewer than {MIN_STREAMS}, even a win on "
            "every stream is not significant at 5%."
        )
    p = "< 0.0001" if ranking.p < 1e-4 else f"= {ranking.p:.4f}"
    conclusion = "the differences are significant" if ranking.p < ALPHA else "no significant differences"
    note = " With so few streams the critical difference is large." if ranking.streams < 10 else ""
    return f"Friedman's test over {ranking.streams} streams (Iman and Davenport's form): p {p}, {conclusion}.{note}"


def _rank_table(names: list[str], ranking: Ranks) -> Table:
    head = ["algorithm", "average rank"]
    if ranking.versus_best is not None:
        head.append("p-value against the best (Wilcoxon, Holm)")
    rows = []
    for column in ranking.average.argsort(kind="stable"):
        row = [Cell(names[column]), Cell(f"{ranking.average[column]:.2f}", float(ranking.average[column]))]
        if ranking.versus_best is not None:
            p = float(ranking.versus_best[column])
            row.append(Cell("–") if p != p else Cell(f"{p:.4f}", p))
        rows.append(row)
    return Table("Average ranks", head, rows, collapsed=ranking.critical is not None)


def _setting(summary: Summary, variant: Variant, stream: StreamInfo) -> str:
    if not variant.tuned:
        return settings_text(variant.settings) or "published"
    best = summary.grids[variant, stream].best
    if best.published:
        return "published"
    return settings_text(tuple(zip(variant.tuned.split(","), best.value, strict=True)))


def _name(summary: Summary, variant: Variant, remark: str = "") -> Cell:
    return Cell(summary.names[variant] + remark, None, "tuned" if variant.tuned else "")


def _error(summary: Summary, variant: Variant, stream: StreamInfo) -> Cell:
    if (variant, stream) not in summary.runs:
        return Cell("–")
    error = summary.error(variant, stream).mean
    best = summary.error(summary.variants_on(stream)[0], stream).mean
    return Cell(percent(error), error, "best" if error == best else "")


def _mean(values: list[Any], digits: int = 0) -> Cell:
    known = [float(value) for value in values if value is not None]
    return Cell(f"{sum(known) / len(known):,.{digits}f}", sum(known) / len(known)) if known else Cell("–")


def _time(microseconds: float | None) -> Cell:
    return Cell("–") if microseconds is None else Cell(f"{microseconds:.3g}", microseconds)


def _slug(summary: Summary) -> str:
    """Return the feedback as part of a file name."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in summary.feedback) or "none"
