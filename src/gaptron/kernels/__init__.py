"""The workshop: compiled verbs that several papers use unchanged."""
