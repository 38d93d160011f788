"""Data sets of OpenML, fetched by scikit-learn and kept in its own cache."""

from gaptron.errors import InputError, StreamError
from gaptron.streams.stream import Stream

PREFIX = "openml:"


def fetch(words: str) -> Stream:
    """The stream of `openml:NAME` or `openml:NAME@VERSION`; columns of categories become their numbers."""
    from sklearn.datasets import fetch_openml  # noqa: PLC0415

    name, _, version = words.removeprefix(PREFIX).partition("@")
    if not name or not (version.isdigit() or not version):
        raise InputError(f"{words}: say openml:NAME or openml:NAME@VERSION, the version a whole number")
    try:
        # One try: a retry sleeps, and says so in a warning of its own.
        X, y = fetch_openml(
            name,
            version=int(version) if version else "active",
            return_X_y=True,
            as_frame=False,
            parser="liac-arff",
            n_retries=1,
        )
    except (OSError, ValueError) as error:  # no network, no such set, or columns of text
        raise StreamError(
            words, f"cannot be fetched from OpenML ({error}): download it yourself and name the file"
        ) from None
    return Stream.from_arrays(X, y, name=words)
