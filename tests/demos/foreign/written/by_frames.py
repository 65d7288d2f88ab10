"""Write the files in `frames/` with pandas and Polars themselves.

pip install pandas polars pyarrow
python by_frames.py
"""

from pathlib import Path

import pandas as pd
import polars as pl

HERE = Path(__file__).parent / "frames"
STATES = [(2 * step + 10 * episode, 2 * step + 1 + 10 * episode) for episode in (0, 1) for step in range(4)]

if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    columns = {
        "episode": [0] * 4 + [1] * 4,
        "across": [float(state[0]) for state in STATES],
        "height": [float(state[1]) for state in STATES],
        "action": [0, 1, 2, 0] * 2,
        "label": ["expert"] * 4 + ["negative"] * 4,
    }
    frame = pd.DataFrame(columns)
    frame.to_csv(HERE / "pandas.csv")  # with its index, as most people write it
    frame.to_parquet(HERE / "pandas.parquet")
    frame.to_json(HERE / "pandas.jsonl", orient="records", lines=True)
    polars = pl.DataFrame(columns)
    polars.write_csv(HERE / "polars.csv")
    polars.write_parquet(HERE / "polars.parquet")
    polars.write_ndjson(HERE / "polars.ndjson")
