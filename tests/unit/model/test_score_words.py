"""Weights and absences in words."""

from tests.unit.scored import scored_model

from radocraft.model import absences, weights_in_words


def test_unrelated_scores_have_nearly_the_weights_of_bayes_rule() -> None:
    words = weights_in_words(scored_model(rows=20_000))
    assert "Weights of 1, 1 for the peers and -1 for the shared features are Bayes' rule" in words
    assert words.endswith("These weights are nearly that.")


def test_related_scores_say_part_of_it_twice() -> None:
    model = scored_model(rows=20_000, related=0.5)
    assert sum(model.full.weights) < 1.8
    assert "part of what one peer says, another has already said" in weights_in_words(model)


def test_absences_are_the_others_models_less_this_one() -> None:
    model = scored_model()
    told = {peer: points for peer, points, _ in absences(model)}
    assert model.outlook is not None
    without = model.outlook.without
    assert told == {peer: 100.0 * (without[peer].error.value - model.outlook.error.value) for peer in ("bank", "shop")}


def test_an_average_was_not_fitted() -> None:
    averaged = scored_model().model_copy(update={"head": "average"})
    assert "nothing was fitted" in weights_in_words(averaged)
    alone = scored_model().model_copy(update={"head": "best peer"})
    assert "taken at its word" in weights_in_words(alone)


def test_without_an_outlook_nothing_is_said_of_absences() -> None:
    assert not [*absences(scored_model().model_copy(update={"outlook": None}))]
