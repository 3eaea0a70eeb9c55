"""A model of scores in words: what its weights mean, and what each peer adds."""

from __future__ import annotations

from collections.abc import Iterator

from radocraft.model._scores import ScoreModel

_RELATED = 0.05
_CLOSE = 0.15


def weights_in_words(model: ScoreModel) -> str:
    """What the weights say of how the peers' scores belong together."""
    peers = model.full.peers
    if model.head == "best peer":
        return "One peer's score is taken at its word: all together are expected to do worse."
    if model.head == "average":
        return "The scores are averaged: every peer has the same weight, and nothing was fitted."
    ones = " ".join("1" for _ in peers).replace(" ", ", ")
    bayes = (
        f"A weight of 1 takes a peer's log-odds at face value. Weights of {ones} for the peers and {1 - len(peers)} "
        "for the shared features are Bayes' rule for scores that are unrelated inside label and signature: every score "
        "counts the shared features in, and the last weight takes them off again until they count once."
    )
    weights, signature = model.full.weights, model.full.signature
    if all(abs(weight - 1.0) < _CLOSE for weight in weights) and abs(signature - 1.0 + len(peers)) < 2 * _CLOSE:
        return f"{bayes} These weights are nearly that."
    related = [model.relation.correlation[row][column] for row in range(len(peers)) for column in range(row)]
    if sum(weights) < len(peers) - _CLOSE and max(related, default=0.0) > _RELATED:
        return (
            f"{bayes} Here they are smaller: the scores are related (correlation up to {max(related):.2f} inside label "
            "and signature), so part of what one peer says, another has already said."
        )
    return f"{bayes} Here they differ: what a score adds to the others is worth more, or less, than it claims."


def absences(model: ScoreModel) -> Iterator[tuple[str, float, str]]:
    """Of every peer how many points of error it takes off the others' model, and a sentence on it."""
    if (outlook := model.outlook) is None:
        return
    for peer in model.full.peers:
        if (without := outlook.without.get(peer)) is None:
            continue
        points = 100.0 * (without.error.value - outlook.error.value)
        if model.full.weights[model.full.peers.index(peer)] <= 0.0:
            yield peer, points, f"{peer} adds nothing to the others: its weight is 0."
            continue
        error, loss = without.error.value, without.log_loss.value
        yield (
            peer,
            points,
            f"Without {peer} the error to expect is {error:.1%}, not {outlook.error.value:.1%}, and the log loss "
            f"{loss:.3f}, not {outlook.log_loss.value:.3f}.",
        )
