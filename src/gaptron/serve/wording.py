"""What is wrong with a body, in plain sentences instead of msgspec's."""

import re

from gaptron.serve.schemas import EVENT_ID_PATTERN, NAME_PATTERN

CHARACTERS = {
    NAME_PATTERN: "1 to 64 characters a-z, 0-9 and -",
    EVENT_ID_PATTERN: "1 to 128 characters A-Z, a-z, 0-9 and . _ : -",
}
TYPES = {
    "array": "an array",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "null": "null",
    "object": "an object",
    "str": "a text",
}
BOUNDS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
UNITS = {"feedback_timeout": " seconds"}  # of fields

PLACE = r" - at `\$\.(?P<place>.+)`"
FEATURE = re.compile(r"Expected `bool \| float \| str \| null`, got `(?P<got>\w+)`" + PLACE)
PATTERN = re.compile(r"Expected `str` matching regex '(?P<pattern>.+)'" + PLACE)
BOUND = re.compile(r"Expected `(?:float|int)` (?P<bound>[<>]=?) (?P<limit>\S+)" + PLACE)
TYPE = re.compile(r"Expected `(?P<expected>\w+)`, got `(?P<got>\w+)`" + PLACE)


def plain(message: str) -> str:
    """Rewrite a message of msgspec that has one of the common forms; leave others as they are."""
    if found := FEATURE.fullmatch(message):
        place = found["place"].removesuffix("[...]")
        return f"a feature in {place} must be a number, a text, true, false or null, not {_type(found['got'])}"
    if found := PATTERN.fullmatch(message):
        pattern = found["pattern"].replace(r"\\", "\\")  # msgspec shows the pattern as Python would
        if pattern in CHARACTERS:
            return f"{found['place']} must be {CHARACTERS[pattern]}, and begin with a letter or digit"
    if found := BOUND.fullmatch(message):
        place, limit = found["place"], float(found["limit"])
        return f"{place} must be {BOUNDS[found['bound']]} {limit:,.15g}{UNITS.get(place, '')}"
    if found := TYPE.fullmatch(message):
        return f"{found['place']} must be {_type(found['expected'])}, not {_type(found['got'])}"
    return message


def _type(name: str) -> str:
    return TYPES.get(name, name)
