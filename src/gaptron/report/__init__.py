"""Figures, tables and the HTML report of a comparison. No other package draws."""
