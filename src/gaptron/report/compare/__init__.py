"""The report of a comparison: one page to open, figures for a paper, a table for the terminal."""

from gaptron.report.compare.page import write
from gaptron.report.compare.terminal import table

__all__ = ["table", "write"]
