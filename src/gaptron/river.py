"""River adapter: `from gaptron.river import Classifier`. Needs the extra `gaptron[river]`."""

from gaptron.adapters.river import Classifier

__all__ = ["Classifier"]
