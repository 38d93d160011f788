"""`gaptron algorithms`: list the algorithms."""

import typer

from gaptron.cli.table import show


def algorithms() -> None:
    """List the algorithms: losses, regret, cost and paper."""
    from gaptron.experiments.external import EXAMPLES  # noqa: PLC0415
    from gaptron.report.paper import overview  # noqa: PLC0415

    show(overview(), "Algorithms (for ‖x‖ ≤ 1; L_T is the loss of the best fixed rule)")
    typer.echo("\n".join(["\n`gaptron compare` also plays classifiers of River and scikit-learn:", *EXAMPLES]))
