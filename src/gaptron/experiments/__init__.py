"""Runs: which are made, where they are made, and what their results say."""
