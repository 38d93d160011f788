"""`gaptron play`: run a learner over a stream and summarize the run."""

import contextlib
import json
from typing import Annotated

import typer

from gaptron.cli import action_options, options, play_actions, settings
from gaptron.cli.columns import declared_features, describe_columns
from gaptron.cli.next_step import next_step
from gaptron.cli.opening import LearnerOptions, StreamOptions, check_folder, load_model, open_run
from gaptron.cli.predictions import writer
from gaptron.cli.progress import progress_bar
from gaptron.cli.run_statistics import RunStatistics
from gaptron.cli.running import run
from gaptron.cli.summary import find_certificate, summarize
from gaptron.cli.summary_text import show
from gaptron.errors import SettingError

DATA, LEARN, SHOW = map(options.panel, ("Reading and preparing the stream", "Learning", "Output"))


def play(
    context: typer.Context,
    stream: Annotated[
        str, typer.Argument(help="A file, - for standard input, or the name of a data set such as synsep or digits.")
    ],
    algorithm: Annotated[str, options.algorithm(LEARN)] = options.DEFAULT_ALGORITHM,
    feedback: Annotated[
        str, LEARN(help="The feedback after each round: full (the true label) or bandit (correct or not).")
    ] = "",
    loss: Annotated[str, options.loss(LEARN)] = "",
    norm: Annotated[float | None, options.norm(LEARN)] = None,
    radius: Annotated[float | None, options.radius(LEARN)] = None,
    horizon: Annotated[int | None, LEARN(help="Number of rounds; counted by default.")] = None,
    set_: Annotated[list[str] | None, options.setting(LEARN)] = None,
    seed: Annotated[int, options.seed(LEARN)] = 0,
    observed: Annotated[
        bool, LEARN("--observed/--no-observed", help="Bandit feedback: collect evidence about every linear rule.")
    ] = True,
    load: Annotated[str, LEARN(metavar="MODEL", help="Continue with the learner saved in this file.")] = "",
    grow: Annotated[
        bool, LEARN("--grow", help="Add labels that the model does not know; by default they are an error.")
    ] = False,
    save: Annotated[str, LEARN(metavar="MODEL", help="Save the learner to this file.")] = "",
    format_: Annotated[
        str, DATA("--format", help="svmlight, csv, tsv, parquet, npz or vw; by default the extension determines it.")
    ] = "",
    label: Annotated[str, options.label(DATA)] = "",
    reward: Annotated[
        str,
        DATA(metavar="COLUMN", help="The column with the reward of the true label, from 0 to 1, for bandit feedback."),
    ] = "",
    actions: Annotated[bool, action_options.flag()] = False,
    costs: Annotated[str, action_options.role("costs")] = "",
    id_: Annotated[str, action_options.role("id_")] = "",
    round_: Annotated[str, action_options.role("round_")] = "",
    action: Annotated[str, action_options.role("action")] = "",
    propensity: Annotated[str, action_options.role("propensity")] = "",
    played: Annotated[str, action_options.role("played")] = "",
    right: Annotated[str, action_options.role("right")] = "",
    in_context: Annotated[str, action_options.role("in_context")] = "",
    available: Annotated[
        str, DATA(metavar="COLUMN", help="The column with the available labels, separated by |, as in mail|chat.")
    ] = "",
    raw: Annotated[
        bool, DATA("--raw", help="Use the numbers of a table unchanged; by default its columns are encoded.")
    ] = False,
    column: Annotated[
        list[str] | None,
        DATA(
            metavar="NAME=KIND",
            help="The kind of a column: number, log, word, time or ignore; detected by default. May be repeated.",
        ),
    ] = None,
    cross: Annotated[
        list[str] | None,
        DATA(metavar="A,B", help="Add the combinations of the values of these columns as features; may be repeated."),
    ] = None,
    classes: Annotated[str, options.classes(DATA)] = "",
    features: Annotated[int | None, options.features(DATA)] = None,
    index_base: Annotated[
        str,
        DATA(
            metavar="0|1|auto",
            help="Index of the first feature in svmlight files; by default detected or as in the model.",
        ),
    ] = "auto",
    header: Annotated[bool | None, options.header(DATA)] = None,
    separator: Annotated[str, options.separator(DATA)] = "",
    decimal: Annotated[str, options.decimal(DATA)] = "",
    dates: Annotated[str, options.dates(DATA)] = "",
    encoding: Annotated[str, options.encoding(DATA)] = "",
    unlabelled: Annotated[
        str, DATA(metavar="skip|error", help="What happens to rows of a table that have no label.")
    ] = "skip",
    chunk: Annotated[
        int | None, DATA(min=1, help="Read this many rounds at a time; by default only large files are read in chunks.")
    ] = None,
    unit_norm: Annotated[bool, DATA("--unit-norm", help="Scale examples to ‖x‖ = 1.")] = False,
    constant: Annotated[bool, options.constant(DATA)] = False,
    log1p: Annotated[bool, options.log1p(DATA)] = False,
    standardize: Annotated[bool, options.standardize(DATA)] = False,
    shuffle: Annotated[int | None, DATA(metavar="SEED", min=0, help="Shuffle the rounds with this seed.")] = None,
    limit: Annotated[int | None, DATA(min=1, help="Use only this many rounds, the first ones.")] = None,
    progress: Annotated[bool, SHOW("--progress", "-P", help="Print a line at every doubling of the rounds.")] = False,
    bound: Annotated[
        bool | None,
        SHOW(
            "--bound/--no-bound",
            help="Show the theory with the bound, which needs the whole stream in memory; by default, --verbose and "
            "--json compute it for small streams.",
        ),
    ] = None,
    predictions: Annotated[
        str, SHOW(metavar="FILE", help="Write the labels of every round to this file: .csv, .jsonl or .parquet.")
    ] = "",
    verbose: Annotated[bool, SHOW("--verbose", "-v", help="Show theory, settings and speed too.")] = False,
    json_: Annotated[bool, options.as_json(SHOW)] = False,
) -> None:
    """Play a stream: predict and learn round by round, then report the mistakes.

    gaptron play clicks.csv --label clicked

    gaptron play synsep

    gaptron play train.svm.gz -a gaptron --feedback bandit --radius 10 --loss hinge

    zcat log.vw.gz | gaptron play - --format vw --classes a,b,c --unit-norm

    gaptron play monday.csv --save model.gaptron && gaptron play tuesday.csv --load model.gaptron

    gaptron play clicks.dsjson --actions --save model.gaptron
    """
    from gaptron.experiments.external import library_of  # noqa: PLC0415

    if library_of(algorithm):
        raise SettingError(
            f"{algorithm} is not an algorithm of gaptron: play it with gaptron compare {stream} -a {algorithm}"
        )
    action_options.check_applicable(context, actions, play_actions.APPLICABLE)
    model = load_model(load, context) if load else None
    if save:
        check_folder(save)
    learner = LearnerOptions(
        algorithm,
        feedback,
        loss,
        norm,
        radius,
        horizon,
        settings.read(set_ or []),
        seed,
        observed,
        declared_features(column, cross),
    )
    if actions:
        roles = {name: context.params[name] for name in action_options.ROLES}
        file = action_options.ActionFile(stream, format_, reward, limit, "refuse", roles)
        play_actions.play_actions(file, learner, model, save=save, bound=bound, verbose=verbose, as_json=json_)
        return
    steps = {"unit_norm": unit_norm, "constant": constant, "log1p": log1p, "standardize": standardize}
    source = StreamOptions(
        stream,
        format_,
        label,
        reward,
        available,
        classes,
        features,
        index_base,
        header,
        options.read_text_options(separator, decimal, dates, encoding),
        unlabelled,
        grow,
        chunk,
        bound,
        shuffle,
        limit,
        steps,
    )
    with_theory = verbose or json_ or bool(bound)
    bound = bound if with_theory else False
    with progress_bar(stream, enabled=not (json_ or progress)) as bar:
        opened = open_run(source, learner, model, context, bar.read)
        statistics = RunStatistics(opened.stream.classes, opened.stream.n_rounds)
        with writer(predictions) if predictions else contextlib.nullcontext() as write:
            result = run(
                opened.learner,
                opened.stream,
                statistics,
                write=write,
                bar=bar,
                doublings=progress,
                keep_trace=bound is not False,
            )
    opened = opened.after_run()
    if save:
        opened.save(save)
    summary = summarize(opened, result, statistics, bound)
    summary["next"] = next_step(summary, context, encoded=opened.encoded)
    if with_theory:
        summary["informative_bound"] = find_certificate(
            opened, result, summary["bound"], learner.features, quiet=json_ or progress
        )
    columns = opened.columns() if opened.encoded else []
    if json_:
        summary["columns"] = [column._asdict() for column in columns] or None
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        show(
            summary,
            describe_columns(columns, summary["rounds"], opened.before) if columns else [],
            with_theory,
        )
