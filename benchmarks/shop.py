"""Off-policy evaluation on a real log of clicks in a shop: one policy estimated from the log of the other.

    pip download obp --no-deps && unzip obp-*.whl -d obp
    python benchmarks/shop.py obp/obp

The Open Bandit Dataset (Saito, Aihara, Matsutani & Narita 2021): ZOZOTOWN showed items to visitors for a week under two
policies at the same time, uniformly at random and by Thompson sampling. The package `obp` has 10,000 rounds of each for
three campaigns. The estimate that `gaptron evaluate` makes for Thompson sampling from the random log can therefore be
compared with the result of Thompson sampling itself, and vice versa. A click is a reward of 1.

The random policy plays every item with the same probability. Thompson sampling used no features of the visitor and kept
learning during the week; its probabilities are estimated by the shares in which it showed the items at each of three
positions (the initial counts in `prior_bts.yaml` of the package give probabilities that are far from the logged ones).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

CAMPAIGNS = ("men", "women", "all")
POSITIONS = 3


def shares(table: pd.DataFrame, items: int) -> np.ndarray:
    """The share of each item at each position, one row per position."""
    shown = np.zeros((POSITIONS, items))
    np.add.at(shown, (table["position"].to_numpy() - 1, table["item_id"].to_numpy()), 1.0)
    return shown / shown.sum(axis=1, keepdims=True)


def convert(table: pd.DataFrame, policy: np.ndarray, path: Path) -> None:
    """Write arrays for `gaptron evaluate`: features of visitor and position, and `other`, the policy to evaluate."""
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
    """The share without a click, with a normal interval."""
    p, T = table["click"].mean(), len(table)
    half = 1.96 * np.sqrt(p * (1 - p) / T)
    return f"{1 - p:.2%} ({1 - p - half:.2%} to {1 - p + half:.2%})"


def main() -> None:
    """Print one row for each campaign and direction, and one complete summary."""
    obp = Path(sys.argv[1])
    print("| campaign | log of | evaluated | truth | doubly robust | proven interval | conclusion |")
    print("|---|---|---|---|---|---|---|")
    shown = ""
    with tempfile.TemporaryDirectory() as folder:
        for campaign in CAMPAIGNS:
            tables = {
                name: pd.read_csv(obp / "dataset" / "obd" / name / campaign / f"{campaign}.csv", index_col=0)
                for name in ("random", "bts")
            }
            items = 1 + max(int(table["item_id"].max()) for table in tables.values())
            policies = {"random": np.full((POSITIONS, items), 1.0 / items), "bts": shares(tables["bts"], items)}
            for log, evaluated in (("random", "bts"), ("bts", "random")):
                path = Path(folder) / f"{campaign}-{log}.npz"
                convert(tables[log], policies[evaluated], path)
                command = [sys.executable, "-m", "gaptron", "evaluate", str(path), "--probabilities", "other"]
                said = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
                report = json.loads(said.stdout)
                estimate, proven = report["estimates"]["doubly robust"], report["proven"]
                between = [f"{e['low']:.2%} to {e['high']:.2%}" for e in (estimate, proven)]
                print(
                    f"| {campaign} | {log} | {evaluated} | {clicks(tables[evaluated])} | {estimate['mistakes']:.2%} "
                    f"({between[0]}) | {between[1]} | {report['conclusion']} |",
                    flush=True,
                )
                if not shown:
                    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(f"\n{shown}")


if __name__ == "__main__":
    main()
