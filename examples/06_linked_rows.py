"""A few hundred rows linked by consent: they show what nobody could see, and measure the error."""

import radocraft as rc
from radocraft.demo import example_people

contract, tables = rc.example_peers(rows=10_000)
parts = [rc.share(table, contract, peer) for peer, table in tables.items()]

blind = rc.learn(parts, contract)
seeing = rc.learn(parts, contract, linked=example_people(400, seed=5))

validation = seeing.validation
assert validation is not None
print(f"without linked rows: expected error {blind.estimate.error:.1%}")
print(f"with {validation.rows} of them: measured error {validation.error:.1%}; they chose {seeing.settings}")
