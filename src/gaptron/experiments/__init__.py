"""THE LABORATORY: which runs happen, and what they leave behind."""
