"""How large the report of a large model is, and how long Chromium takes to open it.

    python benchmarks/report.py

Needs Chromium and Playwright, as the browser tests do. The model is made up: 200 numeric features of two peers,
50,000 blocks of three shared features.
"""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from playwright.sync_api import sync_playwright
from tables import arguments, seconds, show, size

from radocraft import Contract, Model, learn, share
from radocraft.model import BlockTable, Coefficient
from radocraft.pages import write_report

FEATURES, BLOCKS, CODES = 200, 50_000, 29


def large_model() -> Model:
    """The model of a small world, its blocks and weights replaced by as many as are wanted."""
    rng = np.random.default_rng(0)
    half = FEATURES // 2
    peers = {"bank": [f"bank_{at}" for at in range(half)], "insurer": [f"insurer_{at}" for at in range(half)]}
    contract = Contract.model_validate(
        {
            "name": "large",
            "label": {"column": "y", "positive": 1, "negative": 0},
            "shared": [{"name": name, "edges": list(range(CODES - 2))} for name in ("age", "income", "region")],
            "peers": {peer: {"features": dict.fromkeys(names, "numeric")} for peer, names in peers.items()},
        }
    )
    rows = 3 * FEATURES
    columns = {"y": rng.integers(0, 2, rows)} | {name: np.full(rows, 3) for name in ("age", "income", "region")}
    columns |= {name: rng.normal(size=rows) for names in peers.values() for name in names}
    table = pa.table(columns)
    small = learn([share(table, contract, peer) for peer in peers], contract)
    place = np.arange(BLOCKS) // 2
    blocks = BlockTable(
        codes=np.column_stack([place // 900 % CODES, place // 30 % CODES, place % CODES]).tolist(),
        labels=np.where(np.arange(BLOCKS) % 2, 1, -1).tolist(),
        weights=np.maximum(10.0, rng.lognormal(4, 1.5, BLOCKS)).tolist(),
        shared=rng.normal(size=BLOCKS).tolist(),
        peers={peer: rng.normal(size=BLOCKS).tolist() for peer in peers},
    )
    weights = [Coefficient(**{**c.model_dump(), "effect": float(rng.normal())}) for c in small.coefficients]
    return small.model_copy(update={"blocks": blocks, "coefficients": tuple(weights)})


def main() -> None:
    given = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        path = Path(folder) / "report.html"
        model = large_model()
        start = time.perf_counter()
        written = write_report(model, path)
        made = time.perf_counter() - start
        browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(path.as_uri())
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        opened = time.perf_counter() - start
        browser.close()
    figures = {"features": FEATURES, "blocks": BLOCKS, "bytes": written, "written": made, "opened": opened}
    row = (str(FEATURES), f"{BLOCKS:,}", size(written), seconds(made), seconds(opened))
    show(given, figures, ("features", "blocks", "the file", "written in", "open in Chromium in"), [row])


if __name__ == "__main__":
    main()
