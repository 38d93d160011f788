"""River adapter: `from gaptron.river import Classifier`. Needs the extra `river`."""

from gaptron.adapters.river import Classifier

__all__ = ["Classifier"]
