"""Write the files of the tutorial: support tickets, and the team that solved each.

The tickets are simulated. `monday.csv` has 2,000 solved tickets and `tuesday.csv` 600 more, of which only the first 500
are solved.
"""

import csv
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

TEAMS = ["accounts", "billing", "repairs", "shipping"]
CHANNELS = ["chat", "mail", "phone"]
PRODUCTS = ["camera", "charger", "drone", "headset", "lens", "tripod"]
HEADER = ["id", "opened", "channel", "product", "country", "customer_years", "order_value", "team"]


def tickets(rounds: int, start: datetime, first: int, rng: np.random.Generator) -> list[list[object]]:
    """One row for each ticket; the team depends on all columns but the id, with some noise."""
    by_channel, by_product = rng.normal(size=(3, 4)), 2 * rng.normal(size=(6, 4))
    rows: list[list[object]] = []
    opened = start
    for number in range(first, first + rounds):
        opened += timedelta(seconds=int(rng.exponential(30)))
        channel, product = int(rng.integers(3)), int(rng.integers(6))
        country = str(rng.choice(["AT", "DE", "FR", "PL"]))
        years, value = float(rng.gamma(2.0, 2.0)), float(np.exp(rng.normal(4.0, 1.0)))
        pull = by_channel[channel] + by_product[product]
        pull = pull + np.array([0.0, np.log(value) - 4.0, 0.0, country == "PL"]) + [years < 1, 0, 0, 0]
        team = TEAMS[int((pull + rng.gumbel(size=4) / 2).argmax())]
        known = rng.random() < 0.9  # the shop does not know every customer
        rows.append(
            [
                number,
                opened.isoformat(" ", "minutes"),
                CHANNELS[channel],
                PRODUCTS[product],
                country,
                f"{years:.1f}" if known else "",
                f"{value:.2f}",
                team,
            ]
        )
    return rows


def write(folder: Path) -> None:
    """Write both files."""
    rng = np.random.default_rng(7)
    rows = tickets(2600, datetime(2026, 3, 2, 6), 5000, rng)
    for row in rows[2500:]:
        row[-1] = ""
    for name, part in (("monday.csv", rows[:2000]), ("tuesday.csv", rows[2000:2500]), ("open.csv", rows[2500:])):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            head = HEADER if name != "open.csv" else HEADER[:-1]
            writer.writerows([head, *(row[: len(head)] for row in part)])


if __name__ == "__main__":
    write(Path())
