"""For mkdocstrings, which makes the reference: what only comments and values say, as tables and lists."""

from typing import Any

import griffe


class Fields(griffe.Extension):
    """A field is documented once, by the comment on its line; a dictionary by its keys."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Turn the public fields of a tuple or dataclass into a section of its docstring."""
        bases = {str(base) for base in cls.bases}
        decorators = {decorator.callable_path for decorator in cls.decorators}
        if "NamedTuple" not in bases and "dataclasses.dataclass" not in decorators:
            return
        section = []
        for name, member in list(cls.members.items()):
            if member.is_attribute and not name.startswith("_") and "property" not in member.labels:
                meaning = member.source.partition("#")[2].strip() or "–"
                section.append(f"    {name} ({member.annotation}): {meaning}")
                cls.del_member(name)
        if section:
            words = cls.docstring.value if cls.docstring else ""
            cls.docstring = griffe.Docstring("\n".join([words, "", "Attributes:", *section]), parent=cls)

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Show the keys of a module's dictionary, not the private values behind them."""
        if isinstance(attr.value, griffe.ExprDict) and attr.docstring is None:
            keys = ", ".join(f"`{str(key)[1:-1]}`" for key in attr.value.keys)
            attr.docstring = griffe.Docstring(f"A dictionary with the keys {keys}.", parent=attr)
            attr.value = None
