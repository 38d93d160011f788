"""The learner of a model whose every decision brings its own actions, each with its own features."""

from typing import Any

from gaptron.serve.adapter.base import Adapter, Scored, as_matrix, check_numbers
from gaptron.serve.problems import RefusedError, invalid
from gaptron.serve.schemas import Action, DecisionRequest, NewModel, SparseX
from gaptron.types import MOST_ACTIONS

MAX_CROSSES = 1_000_000  # products of features of the context and of an action, in one decision


class ActionAdapter(Adapter):
    """A learner that chooses among the actions of each request."""

    choice, right = "action", "the right action"

    def __init__(self, spec: NewModel) -> None:
        if spec.labels is not None:
            raise invalid("a model with actions has no labels: leave out labels, or actions")
        self.named = spec.features == "auto"
        super().__init__(spec, actions=True)
        self._check_epsilon(self._most)

    @property
    def _most(self) -> int:
        return MOST_ACTIONS

    # --- deciding -----------------------------------------------------------------------------------------------

    def _score(self, request: DecisionRequest) -> Scored:
        preview = self.learner.preview(**self._round(request), advice=request.advice)
        return Scored(self._available(request), preview.distribution, preview.order)

    def _available(self, request: DecisionRequest) -> tuple[str, ...]:
        excluded = set(request.excluded or ())
        return tuple([action.id for action in self._actions(request) if action.id not in excluded])

    def is_sparse(self, request: DecisionRequest) -> bool:
        """Does the request have sparse numbers?"""
        return any(isinstance(action.x, SparseX) for action in request.actions or ())

    def size(self, request: DecisionRequest) -> int:
        """How many examples' features the request holds."""
        return len(request.actions or ())

    def _actions(self, request: DecisionRequest) -> tuple[Action, ...]:
        for name in ("x", "features", "available"):
            if getattr(request, name) is not None:
                raise invalid(f"{name} is for models with labels; this one chooses among actions: give actions")
        if request.actions is None:
            raise invalid("this model chooses among the actions of each request: give actions")
        return request.actions

    def _round(self, request: DecisionRequest) -> dict[str, Any]:
        """The context and the actions as the learner takes them."""
        actions = self._actions(request)
        ids = [action.id for action in actions]
        known, excluded = set(ids), set(request.excluded or ())
        if len(known) < len(ids):
            raise invalid(f"two actions have the id {next(one for one in ids if ids.count(one) > 1)!r}")
        if not excluded <= known:
            raise invalid(f"excluded contains {min(excluded - known)!r}, which is not the id of an action")
        if excluded == known:
            raise invalid("every action is excluded: at least one must be left")
        if not self.named:
            rows = None if not excluded else [at for at, name in enumerate(ids) if name not in excluded]
            return {"x": None, "actions": self._matrix(request), "available": rows}
        for action in actions:
            if action.x is not None:
                raise invalid(f"action {action.id!r} has numbers as x: this model takes named features")
        context = self._used(request.context or {})
        features = [(action.id, self._used(action.features or {})) for action in actions]
        crosses = len(context) * sum(len(cells) for _, cells in features)
        if crosses > MAX_CROSSES:
            raise invalid(
                f"the features of the context and of the actions have {crosses:,} products; at most {MAX_CROSSES:,} "
                "are possible: send fewer features or fewer actions"
            )
        return {"x": context, "actions": features, "excluded": excluded or None}

    def _matrix(self, request: DecisionRequest) -> Any:
        """The actions as rows of numbers."""
        if request.context is not None:
            raise invalid('a context needs named features: create the model with "features": "auto"')
        actions = self._actions(request)
        for action in actions:
            if action.features is not None or action.x is None:
                raise invalid(f"action {action.id!r}: this model takes numbers, give x")
            try:
                check_numbers(action.x, self.width)
            except RefusedError as problem:
                raise invalid(f"action {action.id!r}: {problem}") from None
        rows = [action.x for action in actions]
        if len({isinstance(x, SparseX) for x in rows}) > 1:
            raise invalid("x is sparse for some actions and not for others: use one form")
        return as_matrix(rows, self.width)

    # --- learning -----------------------------------------------------------------------------------------------

    def _check_known(self, name: str, request: DecisionRequest) -> None:
        if all(action.id != name for action in self._actions(request)):
            raise invalid(f"{name!r} is not the id of an action of this decision")

    def _check_feedback(self, request: DecisionRequest, played: str, feedback: dict[str, Any]) -> None:
        self.learner.check_feedback(played, available=self._available(request), **feedback)

    def _learn(self, request: DecisionRequest, played: str, propensity: float, feedback: dict[str, Any]) -> None:
        if "truth" in feedback:
            feedback["truth"] = self._given_name(request, feedback["truth"])
        self.learner.learn_logged(
            **self._round(request),
            action=self._given_name(request, played),
            propensity=propensity,
            advice=request.advice,
            **feedback,
        )

    def _given_name(self, request: DecisionRequest, name: str) -> Any:
        """An action as the learner knows it: by its id, or by its row."""
        return name if self.named else [action.id for action in self._actions(request)].index(name)
