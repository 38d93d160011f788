"""Comparisons: plan tasks, run them, store their results and compute statistics."""
