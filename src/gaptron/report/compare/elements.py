"""The elements of the page: sections, subsections, pictures, tables and cells, as plain data for the template."""

from typing import NamedTuple

from markupsafe import Markup


class Cell(NamedTuple):
    """One cell: its text, and the number it is sorted by."""

    text: str
    value: float | None = None
    css_class: str = ""


class Table(NamedTuple):
    """A table."""

    caption: str
    header: list[str]
    rows: list[list[Cell]]
    collapsed: bool = False


class Picture(NamedTuple):
    """A figure on the page."""

    name: str
    alt: str
    caption: str
    svg: Markup
    collapsed: bool = False


class Subsection(NamedTuple):
    """The content of a section for one feedback."""

    heading: str
    paragraphs: list[str]
    pictures: list[Picture]
    tables: list[Table]


class Section(NamedTuple):
    """A section of the page."""

    id: str
    heading: str
    introduction: str
    subsections: list[Subsection]
