"""A real log that nobody here made: a shop's clicks, one policy judged by the log of the other, beside the truth.

    pip download obp --no-deps && unzip obp-*.whl -d obp
    python benchmarks/shop.py obp/obp

The Open Bandit Dataset (Saito, Aihara, Matsutani & Narita 2021): ZOZOTOWN showed items to visitors for a week under two
policies at once, uniformly at random and by Thompson sampling. The package `obp` has 10,000 rounds of each for three
campaigns. So what `gaptron evaluate` says of Thompson sampling from the random log can be held beside what Thompson
sampling did, and the other way. A click is a reward of 1.

The random policy gives every item the same chance. Thompson sampling looked at no visitor and kept learning during the
week; its chances are taken as the shares in which it showed the items at each of the three places (`prior_bts.yaml` of
the package, the counts it is said to have begun with, gives chances that are far from those it logged).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

CAMPAIGNS = ("men", "women", "all")
PLACES = 3


def shares(table: pd.DataFrame, items: int) -> np.ndarray:
    """How often each item was shown at each place, a row a place."""
    shown = np.zeros((PLACES, items))
    np.add.at(shown, (table["position"].to_numpy() - 1, table["item_id"].to_numpy()), 1.0)
    return shown / shown.sum(axis=1, keepdims=True)


def convert(table: pd.DataFrame, policy: np.ndarray, path: Path) -> None:
    """The arrays `gaptron evaluate` reads; visitor and place are the row, `other` is the policy to be judged."""
    row = pd.get_dummies(table[["position", *(f"user_feature_{i}" for i in range(4))]].astype(str), dtype=float)
    np.savez_compressed(
        path,
        n_actions=policy.shape[1],
        context=row.to_numpy() / np.sqrt(5.0),
        action=table["item_id"].to_numpy(),
        reward=table["click"].to_numpy(dtype=float),
        pscore=table["propensity_score"].to_numpy(),
        other=policy[table["position"].to_numpy() - 1],
    )


def clicks(table: pd.DataFrame) -> str:
    """The share that was clicked, with a normal interval."""
    p, T = table["click"].mean(), len(table)
    half = 1.96 * np.sqrt(p * (1 - p) / T)
    return f"{1 - p:.2%} ({1 - p - half:.2%} to {1 - p + half:.2%})"


def main() -> None:
    """Print a row for each campaign and direction, and one summary in full."""
    obp = Path(sys.argv[1])
    print("| campaign | log of | judged | truth | doubly robust | sure | verdict |")
    print("|---|---|---|---|---|---|---|")
    shown = ""
    with tempfile.TemporaryDirectory() as folder:
        for campaign in CAMPAIGNS:
            tables = {
                name: pd.read_csv(obp / "dataset" / "obd" / name / campaign / f"{campaign}.csv", index_col=0)
                for name in ("random", "bts")
            }
            items = 1 + max(int(table["item_id"].max()) for table in tables.values())
            policies = {"random": np.full((PLACES, items), 1.0 / items), "bts": shares(tables["bts"], items)}
            for log, judged in (("random", "bts"), ("bts", "random")):
                path = Path(folder) / f"{campaign}-{log}.npz"
                convert(tables[log], policies[judged], path)
                command = [sys.executable, "-m", "gaptron", "evaluate", str(path), "--probabilities", "other"]
                said = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
                report = json.loads(said.stdout)
                estimate, sure = report["estimates"]["doubly robust"], report["sure"]
                between = [f"{e['low']:.2%} to {e['high']:.2%}" for e in (estimate, sure)]
                print(
                    f"| {campaign} | {log} | {judged} | {clicks(tables[judged])} | {estimate['mistakes']:.2%} "
                    f"({between[0]}) | {between[1]} | {report['conclusion']} |",
                    flush=True,
                )
                if not shown:
                    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(f"\n{shown}")


if __name__ == "__main__":
    main()
