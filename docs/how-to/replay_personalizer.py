"""Replay a log of Azure Personalizer through a running service, and estimate what the service would have earned.

    python replay_personalizer.py LOG [--endpoint http://127.0.0.1:8717] [--model news] [--key KEY]

Every line of the log (dsjson) becomes a Rank with its context, its actions and its event id. The reward is sent only if
the service chooses the action that was logged, because the rewards of the other actions are unknown. Rank is sent with
`deferActivation`, so that an event without a reward is never learned from. A replay may be repeated after an
interruption: an event that the service knows gets the same response, and its second reward is ignored.
"""

import argparse
import json
import os
import sys
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import numpy as np

from gaptron.errors import GaptronError
from gaptron.offpolicy import Log, OffPolicyEstimate, evaluate_policy

SMALLEST = 1e-6  # propensity
REFUSALS = 400, 409  # statuses that concern one event; any other ends the replay


class Event(NamedTuple):
    """A line of the log."""

    rank: dict[str, Any]  # the body of Rank
    action: str  # that was logged
    propensity: float  # of this action
    reward: float


class Replayed(NamedTuple):
    """An event, and what the service thinks of it."""

    event: Event
    agrees: bool  # it chose the logged action
    probability: float  # with which it would choose the logged action


class SkippedError(Exception):
    """A line that cannot be replayed."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


# --- the log --------------------------------------------------------------------------------------------------------


def event_of(text: str, number: int, low: float) -> Event:
    """Read a line of the log; `low` is the lowest possible reward."""
    try:
        line = json.loads(text)
    except ValueError:
        raise SkippedError("not a JSON object") from None
    if not isinstance(line, dict):
        raise SkippedError("not a JSON object")
    if line.get("_skipLearn") is True:
        raise SkippedError("deferred and never activated")
    if "_outcomes" in line:
        raise SkippedError("several slots")
    try:
        propensity, reward = float(line["_label_probability"]), 0.0 - float(line["_label_cost"])
        actions = [action_of(one) for one in line["c"]["_multi"]]
        action = actions[range(1, len(actions) + 1).index(line["_label_Action"])]["id"]
        context = context_of(line["c"])
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise SkippedError("not a decision", repr(problem)) from None
    if not SMALLEST <= propensity <= 1.0:
        raise SkippedError("no probability from 0.000001 to 1", f"{propensity:g}")
    if not low <= reward <= 1.0:
        raise SkippedError(f"no reward from {low:g} to 1", f"{reward:g}")
    rank = {"contextFeatures": context, "actions": actions, "deferActivation": True}
    return Event({**rank, "eventId": str(line.get("EventId", f"line-{number}"))}, action, propensity, reward)


def context_of(shared: dict[str, Any]) -> list[dict[str, Any]]:
    """The `contextFeatures` of Rank, which Personalizer logs as FromUrl and gaptron as C."""
    own = {name: value for name, value in shared.items() if not name.startswith("_")}
    return listed(own["FromUrl"] if own.keys() == {"FromUrl"} else own["C"] if own.keys() == {"C"} else own)


def action_of(one: dict[str, Any]) -> dict[str, Any]:
    """An action of Rank, whose features Personalizer logs as j and gaptron as A."""
    id = one["_tag"] if "_tag" in one else one["i"]["id"]
    own = {name: value for name, value in one.items() if name not in ("_tag", "i")}
    return {"id": id, "features": listed(own["j"] if own.keys() == {"j"} else own["A"] if own.keys() == {"A"} else own)}


def listed(features: Any) -> list[dict[str, Any]]:
    """Features as Rank takes them, a list of objects."""
    return features if isinstance(features, list) else [features]


# --- the service ----------------------------------------------------------------------------------------------------


class Service:
    """Personalizer's Rank and Reward."""

    def __init__(self, endpoint: str, model: str, key: str) -> None:
        address = urlsplit(endpoint)
        connect = HTTPSConnection if address.scheme == "https" else HTTPConnection
        self.connection = connect(address.netloc, timeout=600)
        self.path = address.path.rstrip("/") + (f"/m/{quote(model)}" if model else "") + "/personalizer/v1.0"
        self.headers = {"Content-Type": "application/json", "Ocp-Apim-Subscription-Key": key}

    def replay(self, event: Event) -> Replayed:
        """Send Rank, and Reward if the service chooses the logged action."""
        ranked = self._post("rank", event.rank)
        agrees = ranked["rewardActionId"] == event.action
        if agrees:
            self._post(f"events/{quote(ranked['eventId'], safe='')}/reward", {"value": event.reward})
        probability = next(one["probability"] for one in ranked["ranking"] if one["id"] == event.action)
        return Replayed(event, agrees, probability)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        self.connection.request("POST", f"{self.path}/{path}", json.dumps(body), self.headers)
        response = self.connection.getresponse()
        content = response.read()
        if response.status < 300:
            return json.loads(content) if content else None
        try:
            message = json.loads(content)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = response.reason
        if response.status in REFUSALS:
            raise SkippedError(f"refused by the service with {response.status}", message)
        sys.exit(f"{path} got {response.status}: {message}")


# --- the result -----------------------------------------------------------------------------------------------------


def estimate(found: list[Replayed], low: float) -> OffPolicyEstimate:
    """Estimate by inverse propensity from all events, also those where the service chose another action."""
    positions = [[one["id"] for one in event.rank["actions"]].index(event.action) for event, _, _ in found]
    log = Log.from_arrays(
        np.zeros((len(found), 1)),
        positions,
        [(event.reward - low) / (1.0 - low) for event, _, _ in found],
        [event.propensity for event, _, _ in found],
        classes=range(max(len(event.rank["actions"]) for event, _, _ in found)),
    )
    return evaluate_policy(log.with_policy([one.probability for one in found]))


def show(result: OffPolicyEstimate, low: float) -> None:
    """Print mean rewards; the estimates are of mistakes, which are 1 - reward with rewards from 0 to 1."""
    print(f"\n{'mean reward':36}      {result.level:.0%} interval")
    for name, one in (
        ("of the log", result.logged),
        ("of the service, estimated", result.estimates[0]),
        ("  with the proven interval", result.proven),
    ):
        value, least, most = (1.0 - (1.0 - low) * mistakes for mistakes in (one.mistakes, one.high, one.low))
        print(f"{name:30} {value:6.3f}  {least:6.3f} to {most:.3f}")
    for warning in result.warnings:
        print(f"warning: {warning}")


def replay(path: str, service: Service, low: float) -> tuple[list[Replayed], dict[str, list[str]]]:
    """Replay a log; return its events, and for each reason to skip lines those lines."""
    found: list[Replayed] = []
    skipped: dict[str, list[str]] = {}
    ids: set[str] = set()
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                event = event_of(text, number, low)
                if event.rank["eventId"] in ids:
                    raise SkippedError("event id that was used before", event.rank["eventId"])
                ids.add(event.rank["eventId"])
                found.append(service.replay(event))
            except SkippedError as problem:
                detail = f" ({problem.detail})" if problem.detail else ""
                skipped.setdefault(problem.reason, []).append(f"line {number}{detail}")
    return found, skipped


def main() -> None:
    """Replay a log and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", help="a log of Personalizer, dsjson")
    parser.add_argument("--endpoint", default=os.environ.get("PERSONALIZER_ENDPOINT", "http://127.0.0.1:8717"))
    parser.add_argument("--model", default="", help="needed if the key or the service has several models")
    parser.add_argument("--key", default=os.environ.get("PERSONALIZER_KEY", ""), help="default: $PERSONALIZER_KEY")
    parser.add_argument(
        "--lowest-reward", type=float, default=0.0, choices=(0.0, -1.0), help="-1 for a model with rewards from -1 to 1"
    )
    options = parser.parse_args()
    low = options.lowest_reward
    try:
        with closing(Service(options.endpoint, options.model, options.key)) as service:
            found, skipped = replay(options.log, service, low)
    except (OSError, UnicodeDecodeError, HTTPException) as problem:
        sys.exit(f"{options.log} to {options.endpoint}: {problem!r}")
    lines = len(found) + sum(map(len, skipped.values()))
    print(f"{lines:,} lines: {len(found):,} replayed, {lines - len(found):,} skipped")
    for reason, at in skipped.items():
        print(f"  {len(at):,} {reason}: {'first in ' if len(at) > 1 else ''}{at[0]}")
    if not found:
        sys.exit("no line can be replayed")
    agreed = sum(one.agrees for one in found)
    print(f"the service chose the logged action in {agreed:,} of {len(found):,} events ({agreed / len(found):.1%})")
    try:
        show(estimate(found, low), low)
    except GaptronError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
