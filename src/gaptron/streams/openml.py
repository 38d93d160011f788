"""Data sets of OpenML, downloaded by scikit-learn and stored in its cache."""

from gaptron.errors import InputError, StreamError
from gaptron.streams.stream import Stream

PREFIX = "openml:"


def fetch(name: str) -> Stream:
    """Open `openml:NAME` or `openml:NAME@VERSION`; categories become their numbers."""
    from sklearn.datasets import fetch_openml  # noqa: PLC0415

    data_set, _, version = name.removeprefix(PREFIX).partition("@")
    if not data_set or not (version.isdigit() or not version):
        raise InputError(f"{name} must have the form openml:NAME or openml:NAME@VERSION, with a whole number")
    try:
        # One attempt: scikit-learn's retries sleep and raise a warning.
        X, y = fetch_openml(
            data_set,
            version=int(version) if version else "active",
            return_X_y=True,
            as_frame=False,
            parser="liac-arff",
            n_retries=1,
        )
    except (OSError, ValueError) as error:  # no network, no such data set, or columns of text
        raise StreamError(
            name, f"cannot be downloaded from OpenML ({error}): download it yourself and open the file"
        ) from None
    return Stream.from_arrays(X, y, name=name)
