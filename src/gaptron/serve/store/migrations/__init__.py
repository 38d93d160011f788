"""The tables, as numbered migrations. A database records how many were applied; the others are applied at a start."""

from importlib.resources import files


def migrations(dialect: str) -> list[tuple[int, str]]:
    """Return the number and the SQL of every migration."""
    suffix = f".{dialect}.sql"
    found = [file for file in files(__package__).iterdir() if file.name.endswith(suffix)]
    return sorted((int(file.name.removesuffix(suffix)), file.read_text(encoding="utf-8")) for file in found)
