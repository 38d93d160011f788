"""Ids of actions in formats without a place of their own for them. The first action of a file shows where they are."""

from typing import Any

from gaptron.streams.actions.features import JOIN
from gaptron.streams.json_lines import MalformedError, short

TAG, POSITION = "tag", "position"
NO_IDS = "the actions have no ids: positions are used, and no action is recognised again"
_ID = "id"  # the last part of the name of a feature that is an id


class Ids:
    """Where the ids of a file's actions are.

    Args:
        where: "tag", "position", or the name of a feature; None: the tag of the first action if it has one, otherwise
            its feature id, and otherwise positions.
    """

    def __init__(self, where: str | None) -> None:
        self.where = where

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the ids."""
        return (NO_IDS,) if self.by_position else ()

    @property
    def by_position(self) -> bool:
        """Are the ids only positions?"""
        return self.where == POSITION

    def take(self, at: int, tag: str | None, features: dict[str, Any]) -> Any:
        """Return the id of the action at a position, and remove it from its features."""
        if self.where is None:
            self.where = TAG if tag else next(filter(_is_id, features), POSITION)
        if self.where == POSITION:
            return at
        if self.where == TAG:
            if not tag:
                raise MalformedError(f"action {at + 1} has no tag, which is the id of the first action: give id=...")
            for name in [name for name in features if _is_id(name) and str(features[name]) == tag]:
                del features[name]
            return tag
        value = features.pop(self.where, None)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            found = "has no" if value is None else f"has {short(value)} as"
            raise MalformedError(f"action {at + 1} {found} {self.where}, which is to be its id: give id=...")
        return value


def _is_id(name: str) -> bool:
    return name.rpartition(JOIN)[2] == _ID
