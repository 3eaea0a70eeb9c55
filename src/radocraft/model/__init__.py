"""The model: one linear classifier over all peers' columns, with what is known about it.

`record` is the file, `scoring` gives scores for a table, `explanation` says what
they are made of, `pipeline` exports to scikit-learn; `Model` brings them together.
"""

from radocraft.model.explanation import Explanation, explain
from radocraft.model.model import Model
from radocraft.model.scoring import Scores, predict

__all__ = ["Explanation", "Model", "Scores", "explain", "predict"]
