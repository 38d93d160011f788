"""The gallery: the only room that draws, and where tables get their columns."""
