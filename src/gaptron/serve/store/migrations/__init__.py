"""The tables, in numbered steps. A database says how many it has seen; the rest are applied at start."""

from importlib.resources import files


def steps(dialect: str) -> list[tuple[int, str]]:
    """Number and SQL of every step."""
    ending = f".{dialect}.sql"
    found = [file for file in files(__package__).iterdir() if file.name.endswith(ending)]
    return sorted((int(file.name.removesuffix(ending)), file.read_text(encoding="utf-8")) for file in found)
