"""Import decisions of another log, so that a model starts with what they show."""

import asyncio
from collections import Counter
from collections.abc import Set

from msgspec import structs

from gaptron.data.values import MIN_PROPENSITY
from gaptron.errors import GaptronError
from gaptron.serve.coordinator import Coordinator
from gaptron.serve.events import Imported
from gaptron.serve.model_state import Model
from gaptron.serve.problems import invalid
from gaptron.serve.schemas import DecisionRequest, ImportedDecision, Imports, Played

MAX_REASONS = 5  # that an error lists


async def import_decisions(coordinator: Coordinator, name: str, decisions: list[ImportedDecision]) -> Imports:
    """Learn from decisions of another log, in order and in one commit. Those known by their ids are left out.

    Raises:
        RefusedError: a decision cannot be learned from. Nothing is imported; the message counts them by reason.
    """
    async with coordinator.importing:  # an import is on disk before the next one looks for the ids it knows
        model = coordinator.model(name)
        ids = [one.event_id for one in decisions]
        seqs = await asyncio.to_thread(coordinator.store.known_events, model.name, ids)
        known = {event_id for event_id, seq in seqs.items() if seq < 0 or seq >= model.first_seq}
        new = [one for one in decisions if one.event_id not in known]
        for one in new:
            await coordinator.compile(model, _request(one))
        model = coordinator.model(name)  # again: it may have changed meanwhile
        await coordinator.record_imported(model, _checked(model, new, seqs.keys()))
        return Imports(len(new), len(decisions) - len(new))


def _checked(model: Model, decisions: list[ImportedDecision], used: Set[str]) -> list[tuple[str, Imported]]:
    """The events of decisions that can all be learned from, one after the other; `used` ids are in the log."""
    found: list[tuple[str, Imported]] = []
    reasons: Counter[str] = Counter()
    first: dict[str, str] = {}  # reason → the event it was found at
    ids: set[str] = set()
    adapter = model.adapter
    settled = adapter.features
    for one in decisions:
        try:
            if one.event_id in ids:
                raise invalid("have an event_id that occurs twice")
            ids.add(one.event_id)
            if one.event_id in used:
                raise invalid("have an event_id that a deleted model of this name used: use other ids")
            features = adapter.features_after(_request(one))
            settled = settled or features  # by the first, if the model has made no decision
            if features != settled:
                raise invalid("have other features than the first")
            found.append((one.event_id, _imported(model, one)))
        except GaptronError as problem:
            reasons[str(problem)] += 1
            first.setdefault(str(problem), one.event_id)
    if reasons:
        shown = [
            f"{count:,} of {len(decisions):,} {reason} (first: event {first[reason]!r})"
            for reason, count in reasons.most_common(MAX_REASONS)
        ]
        raise invalid(f"nothing was imported: {'; '.join(shown)}")
    return found


def _imported(model: Model, one: ImportedDecision) -> Imported:
    """The event of a decision; refused if it could not be learned from."""
    adapter, outcome, request = model.adapter, one.outcome, _request(one)
    played = getattr(one, adapter.choice)
    if None not in (one.label, one.action):
        raise invalid("have both a label and an action")
    if outcome.void or outcome.played is not None:
        raise invalid("are void or were overridden: leave them out")
    if played is None and adapter.feedback == "full":
        played = outcome.label or outcome.action
    if played is None:
        raise invalid(f"have no {adapter.choice} that was played")
    propensity = one.propensity
    if adapter.feedback == "full":
        propensity = propensity or 1.0  # which is not used
    if propensity is None:
        raise invalid("have no propensity, which bandit feedback needs: log it, or create a model with feedback 'full'")
    if propensity < MIN_PROPENSITY:
        raise invalid(f"have a propensity below {MIN_PROPENSITY:g}")
    try:
        adapter.check(request)
        adapter.probability(request, played)  # refuses features that are not those of the model
        adapter.check_played(structs.replace(request, played=Played(**{adapter.choice: played})))
        adapter.check_outcome(outcome, request, played)
    except GaptronError as problem:
        raise invalid(f"cannot be learned from, as {problem}") from None
    return Imported(request, played, propensity, outcome)


def _request(one: ImportedDecision) -> DecisionRequest:
    return DecisionRequest(
        x=one.x,
        features=one.features,
        context=one.context,
        actions=one.actions,
        available=one.available,
        excluded=one.excluded,
    )
