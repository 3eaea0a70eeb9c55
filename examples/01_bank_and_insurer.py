"""From two tables to a model: two parts, one model, and its error on new people."""

import radocraft as rc
from radocraft.demo import example_people

contract, tables = rc.example_peers(rows=10_000)  # made up; each peer's table in an order of its own

parts = []
for peer, table in tables.items():
    part = rc.share(table, contract, peer, output=f"{peer}.part.parquet")  # sums with noise; this may leave
    print(f"{peer}: {table.num_rows:,} rows became {part.table.num_rows} cells, {part.nbytes:,} bytes")
    parts.append(part)

model = rc.learn(parts, contract)
people = example_people(5_000, seed=7)
truth = [label == "yes" for label in people["defaulted"].to_pylist()]
scores = model.predict(people.drop_columns(["defaulted"]))
wrong = sum(said != true for said, true in zip(scores.positive, truth, strict=True)) / len(truth)
print(f"error on 5,000 new people: {wrong:.1%}; the model expected {model.estimate.error:.1%}")
