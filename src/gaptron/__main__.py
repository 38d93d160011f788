"""`python -m gaptron` is `gaptron`."""

from gaptron.cli import main

main()
