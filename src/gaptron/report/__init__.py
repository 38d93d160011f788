"""Figures, the columns of tables, and the page of a comparison. Nothing else draws."""
