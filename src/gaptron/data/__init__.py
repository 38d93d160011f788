"""Checks of what callers give: examples, labels, feedback, single values, files."""
