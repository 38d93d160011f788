"""The report of a comparison: an HTML page, figures as SVG and PDF, and a table for the terminal."""

from gaptron.report.compare.page import write
from gaptron.report.compare.terminal import table

__all__ = ["table", "write"]
