"""Scoring with one peer's columns only, what scores are made of, and the model as a scikit-learn pipeline."""

import numpy as np

import radocraft as rc
from radocraft.demo import example_people

contract, tables = rc.example_peers(rows=10_000)
parts = [rc.share(table, contract, peer) for peer, table in tables.items()]
model = rc.learn(parts, contract)

mine = model.predict(tables["bank"])  # the insurer's columns are filled in from block means
print("scored with the columns of:", *mine.view)

for coefficient in rc.explain(model).coefficients[:3]:
    print(f"{coefficient.name:12s} {coefficient.peer or 'shared':8s} effect {coefficient.effect:+.3f}")

people = example_people(1_000, seed=3)
pipeline = model.to_sklearn()
same = np.allclose(pipeline.predict_proba(people)[:, 1], model.predict(people).probability)
print("the pipeline tells the same probabilities:", same)
