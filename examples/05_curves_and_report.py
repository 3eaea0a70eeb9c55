"""Curves instead of straight lines for one column, and the report that shows them."""

from pathlib import Path

import radocraft as rc
from radocraft.pages import write_report

agreed, tables = rc.example_peers(rows=10_000)
spelled = agreed.model_dump(mode="json")
spelled["peers"]["bank"]["features"]["income"] = {"kind": "spline", "knots": [15_000, 30_000, 45_000, 60_000]}
contract = rc.Contract.model_validate(spelled)

parts = [rc.share(table, contract, peer) for peer, table in tables.items()]
model = rc.learn(parts, contract)
size = write_report(model, "report.html")
shown = "What income adds" in Path("report.html").read_text()
print(f"report.html: {size / 1000:.0f} kB, shows income as a curve: {shown}")
