"""What the page is made of: sections, parts, pictures, tables, cells. They name things and do nothing."""

from typing import NamedTuple

from markupsafe import Markup


class Cell(NamedTuple):
    """One cell: its words, and the number it is sorted by."""

    text: str
    value: float | None = None
    mark: str = ""  # a class of the style sheet


class Table(NamedTuple):
    """Columns and rows."""

    caption: str
    head: list[str]
    rows: list[list[Cell]]
    quiet: bool = False  # folded away until asked for


class Picture(NamedTuple):
    """A figure on the page."""

    name: str
    alt: str
    caption: str
    svg: Markup
    quiet: bool = False


class Part(NamedTuple):
    """What a section says under one feedback."""

    heading: str
    words: list[str]
    pictures: list[Picture]
    tables: list[Table]


class Section(NamedTuple):
    """A heading and what is under it."""

    id: str
    heading: str
    words: str
    parts: list[Part]
