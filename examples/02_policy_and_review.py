"""A peer's own rules: a policy file, a pending release, a person who decides, and the ledger."""

from pathlib import Path

import radocraft as rc
from radocraft.errors import AwaitsReview, PolicyRefusal
from radocraft.ledger import Ledger
from radocraft.peer import conclude

contract, tables = rc.example_peers(rows=10_000)
Path("policy.toml").write_text(
    'epsilon = 2.0\nlifetime_epsilon = 2.5\nreview = true\nledger = "bank.ledger"\ntable = "customers"\n'
)
policy, file = rc.Policy.load("policy.toml"), Path("bank.part.parquet")

try:
    rc.share(tables["bank"], contract, "bank", policy=policy, output=file)
except AwaitsReview as waits:
    print("left already:", file.exists())
    conclude(waits.pending, "approval", "A. Muster", "agreed on 3 May")
print("left now:", file.exists())

first = rc.Part.read(file)
again = rc.share(tables["bank"], contract, "bank", policy=policy, output="again.part.parquet")
print("asked again, the same file:", again.metadata["hash"] == first.metadata["hash"])

ledger = Ledger(Path("bank.ledger")).history()
print("ledger:", [line.entry.kind for line in ledger.lines])

try:  # the same table without its first three rows is another release, which the budget does not allow
    rc.share(tables["bank"].slice(3), contract, "bank", policy=policy, output="fewer.part.parquet")
except PolicyRefusal as refusal:
    print("refused:", refusal)
