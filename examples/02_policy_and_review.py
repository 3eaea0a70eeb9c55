"""A peer's own rules: a policy file, a release that waits, a person who decides, and the ledger that remembers."""

from pathlib import Path

import radocraft as rc
from radocraft.errors import PolicyRefusal
from radocraft.offer import pending_path
from radocraft.privacy.ledger import Ledger
from radocraft.review import conclude

contract, tables = rc.example_peers(rows=400)  # few rows, so that some blocks are too small
Path("policy.toml").write_text('min_rows = 10\nreview = true\nledger = "bank.ledger"\ntable = "customers"\n')
policy = rc.Policy.load("policy.toml")

released = rc.make_release(tables["bank"], contract, "bank", policy)
for block in released.held_back[:2]:
    print(f"held back: {', '.join(block.signature)}, {block.label}: {block.reason}")

part = Path("bank.part.parquet")
rc.let_go(released, policy, "customers", part, waits=True)
print("left already:", part.exists())

conclude(pending_path(part), "approval", "A. Muster", "agreed on 3 May")
print("left now:", part.exists())
print("ledger:", [line["kind"] for line in Ledger(Path("bank.ledger")).entries()])

try:  # the same table without its first three rows: the two releases together would give these rows away
    fewer = rc.make_release(tables["bank"].slice(3), contract, "bank", policy)
    rc.let_go(fewer, policy, "customers", Path("again.part.parquet"))
except PolicyRefusal as refusal:
    print("refused:", str(refusal).split(".")[0])
