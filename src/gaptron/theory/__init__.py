"""What the theorems say about a run.

| module | holds |
|---|---|
| `bounds` | the bound of an algorithm's theorem on the stream that was played |
| `comparator` | the best fixed linear rule U in hindsight, which makes that bound smallest |
| `conditions` | what happened in a run that decides which theorems apply to it |
| `high_probability` | from expected mistakes to mistakes, with probability 1 - δ |
| `intervals` | approximate confidence intervals for the chance of a mistake |

Nothing here plays or learns; the functions take the data, labels and counts of a run.
"""
