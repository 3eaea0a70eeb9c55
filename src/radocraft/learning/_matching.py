"""Expected matching with caution.

Symbols as in `completion`: r, E, V_j, M. For a classifier theta, at ridge
strength alpha (the constant is not penalised),

    expected(theta) = 1 - 2 r^T theta / M + theta^T (E + blockdiag V_j) theta / M
    worst(theta)    = 1 - 2 r^T theta / M + [theta^T E theta + (sum_j ||V_j^(1/2) theta_j||)^2] / M

`expected` is the mean of the square loss over all matchings of rows with equal
signature and label (in rolled-up blocks, under the assumption in `completion`).
`worst` is an upper bound on the loss for every one of them, rolled up or not:
E is exact, and the unexplained scatter is positive semi-definite with diagonal
blocks V_j, whatever the matching (Cauchy-Schwarz). When peers see different
people, both speak of a population with the blocks' weights and moments. Where a peer lacks
the label, its part of r is an estimate, with covariance M^2 D (`adjusted`); `worst`
then takes r^T theta to be two standard deviations less than it seems, 2 M (theta^T D theta)^(1/2).
``caution`` rho blends them,

    minimise  (1 - rho) expected + rho worst + alpha ||theta||^2.

With several classes there is one r and one theta for each (+1 for the class, -1
for all others), one G for all, one alpha, and losses are means over the classes;
what is said of one theta holds of each. With a numeric label 1 becomes the mean
of its square, in units in which its variance is about 1.

With theta_l = 0 for every peer but j, `worst` is exactly peer j's own loss; so at
caution 1 the model is never worse than the best peer alone, whatever the true
matching. The square of the sum is solved by
``(sum_j a_j)^2 = min over the simplex of sum_j a_j^2 / eta_j``: alternate
``eta_j`` proportional to ``a_j`` with a ridge solve in which V_j is scaled by
``(1 - rho) + rho / eta_j``; likewise ``2 s = min over t of s^2 / t + t``, and D is scaled by ``2 rho / s``.

alpha is chosen by generalised cross-validation, closed form from one
eigendecomposition of G / M and with no joined row:

    loss(alpha) / (1 - df(alpha) / M)^2,   df(alpha) = sum_k lambda_k / (lambda_k + alpha).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from radocraft.arrays import Floats
from radocraft.errors import LearnError
from radocraft.learning._blocks import Blocks
from radocraft.learning._completion import DEVIATIONS, Completion, complete
from radocraft.learning._fit import Fit, LinkedTest
from radocraft.learning._relation import largest_correlation, same_people
from radocraft.model import Tuning

ALPHAS = tuple(float(alpha) for alpha in np.logspace(-6, 3, 73))
DEFAULT_CAUTION = 0.25
_LESS = (
    "used caution {} instead of {}: the block sums show that this is enough, assuming that all peers saw the same "
    "people (they have equally many rows in every block)"
)
_ROUNDS = 200
_TOLERANCE = 1e-10
_NOTHING = 1e-10


def fit_matching(blocks: Blocks, caution: float | None = None, alpha: float | None = None) -> Fit:
    """Minimise the blend of expected and worst loss over all matchings of rows, at the caution that is due if None."""
    if caution is not None and not 0.0 <= caution <= 1.0:
        raise LearnError(f"caution must lie between 0 and 1, not {caution}.")
    known = complete(blocks)
    tuning = generalised_cross_validation(known) if alpha is None else None
    strength = tuning.chosen if tuning is not None else float(alpha or 0.0)
    problem = Ridge(known, strength)
    rho = caution_due(problem, blocks) if caution is None else caution
    fit = describe(problem, problem.cautious(rho), blocks, settings={"caution": rho}, tuning=tuning)
    return (
        replace(fit, notes=(_LESS.format(rho, DEFAULT_CAUTION),)) if caution is None and rho < DEFAULT_CAUTION else fit
    )


def caution_due(problem: Ridge, blocks: Blocks) -> float:
    """The usual caution, or as little as block sums show to be enough, by its model and by that without any."""
    if not same_people(blocks) or len(problem.known.layout.common):
        return DEFAULT_CAUTION
    thetas = [theta.reshape(len(theta), -1) for theta in map(problem.cautious, (0.0, DEFAULT_CAUTION))]
    most = largest_correlation(blocks, problem.known, np.hstack(thetas))
    return float(np.ceil(100.0 * min(max(most, 0.0), DEFAULT_CAUTION)) / 100.0)


def describe(
    problem: Ridge,
    theta: Floats,
    blocks: Blocks,
    *,
    settings: dict[str, float],
    tuning: Tuning | None,
    validation: LinkedTest | None = None,
) -> Fit:
    """A fit with its losses: expected, guaranteed, and each peer's own if it holds the label."""
    return Fit(
        method="matching",
        theta=theta,
        known=problem.known,
        settings={**settings, "alpha": problem.alpha},
        tuning=tuning,
        freedom=Spectrum.of(problem.known).freedom(problem.alpha),
        losses={"expected": problem.loss(theta, 0.0), "guaranteed": problem.loss(theta, 1.0)},
        peer_losses={
            peer: problem.loss(problem.alone(index), 0.0)
            for index, peer in enumerate(blocks.peers)
            if blocks.contract.labelled(peer)
        },
        validation=validation,
    )


@dataclass(frozen=True)
class Ridge:
    """The ridge problem at one strength."""

    known: Completion
    alpha: float

    @property
    def penalty(self) -> Floats:
        """alpha on every coordinate but the constant."""
        diagonal = np.full(self.known.layout.size, self.alpha)
        diagonal[: self.known.layout.shared.start] = 0.0
        return diagonal

    def loss(self, theta: Floats, caution: float) -> float:
        """Blend of expected (0) and worst (1) ridge loss, the mean over classes if there are several."""
        known = self.known
        gain = 2.0 * np.sum(known.r * theta, axis=0)
        fit = known.square + (known.squares(theta, caution) - gain) / known.total
        fit = fit + 2.0 * caution * DEVIATIONS * known.uncertainty_of(theta)
        return float(np.mean(fit + self.penalty @ theta**2))

    def solve(self, gram: Floats, kept: Floats | None = None) -> Floats:
        """Ridge under a second moment, all coordinates outside ``kept`` at zero."""
        known = self.known
        pick = np.arange(known.layout.size) if kept is None else kept
        system = gram[np.ix_(pick, pick)] + np.diag(known.total * self.penalty[pick])
        theta = np.zeros_like(known.r)
        theta[pick] = solve_positive(system, known.r[pick])
        return theta

    def alone(self, index: int) -> Floats:
        """What peer ``at`` would learn from its own table."""
        layout = self.known.layout
        columns = np.concatenate([np.arange(layout.shared.stop), np.sort(layout.held[index])])
        return self.solve(self.known.expected(), columns)

    def cautious(self, caution: float) -> Floats:
        """The minimiser at this caution, never worse than any peer alone on its own objective."""
        if self.known.r.ndim > 1 and caution > 0.0:
            return np.column_stack([Ridge(known, self.alpha).cautious(caution) for known in self.known.each()])
        best = self.solve(self.known.expected())
        if caution == 0.0 or len(self.known.unexplained) < 2:
            return best
        candidates = [
            self.alternate(best, caution),
            *(self.alone(index) for index in range(len(self.known.unexplained))),
        ]
        return min(candidates, key=lambda theta: self.loss(theta, caution))

    def alternate(self, theta: Floats, caution: float) -> Floats:
        """Alternate the peers' shares eta with a ridge solve until the objective settles."""
        value = self.loss(theta, caution)
        for _ in range(_ROUNDS):
            hidden = self.known.hidden(theta)
            share = np.maximum(hidden / max(hidden.sum(), np.finfo(float).tiny), 1e-8)
            stretch = (1.0 - caution) + caution / share
            theta = self.solve(self.known.expected(stretch) + self.uncertain(theta, caution))
            previous, value = value, self.loss(theta, caution)
            if previous - value <= _TOLERANCE * abs(previous):
                break
        return theta

    def uncertain(self, theta: Floats, caution: float) -> Floats | float:
        """What uncertainty in r adds to the second moment."""
        known = self.known
        if known.uncertainty is None:
            return 0.0
        scale = caution * DEVIATIONS * known.total / max(float(known.uncertainty_of(theta)), _NOTHING)
        return np.asarray(scale * known.uncertainty[0])


@dataclass(frozen=True)
class Spectrum:
    """The ridge problem in the directions of G / M, the constant eliminated first.

    ``values`` are the eigenvalues, ``explained`` how much of the loss each
    direction could take away, ``never`` what no direction can, ``spent`` the
    degrees of freedom of the constant.
    """

    values: Floats
    explained: Floats
    never: float
    spent: float

    @classmethod
    def of(cls, known: Completion) -> Spectrum:
        """One eigendecomposition."""
        gram, r, spent, floor = known.expected() / known.total, known.r / known.total, 0.0, known.square
        r = r.reshape(len(r), -1)
        if known.layout.intercept:
            edge = gram[0, 1:]
            floor, spent = floor - float(np.mean(r[0] ** 2)), 1.0
            gram, r = gram[1:, 1:] - np.outer(edge, edge), r[1:] - np.outer(edge, r[0])
        values, vectors = np.linalg.eigh(gram)
        kept = values > np.finfo(float).eps * len(values) * values.max(initial=0.0)
        values, target = values[kept], (vectors.T @ r)[kept]
        explained = np.mean(target**2, axis=1) / values
        never = floor - float(explained.sum())
        return cls(values, explained, never if never > _NOTHING else 0.0, spent)

    def freedom(self, alpha: float) -> float:
        """Degrees of freedom, df(alpha) = sum_k lambda_k / (lambda_k + alpha), and one for the constant."""
        return self.spent + float(np.sum(self.values / (self.values + alpha)))

    def score(self, alpha: float, total: float) -> float:
        """loss(alpha) / (1 - df(alpha) / M)^2.

        With more columns than rows both loss and freedom left go to 0 with
        alpha; as sums of positive terms they keep their digits.
        """
        shrink = alpha / (self.values + alpha)
        loss = self.never + float(self.explained @ shrink**2)
        left = (total - self.spent - len(self.values) + float(shrink.sum())) / total
        return loss / left**2 if left > 0 else float("inf")


def generalised_cross_validation(known: Completion) -> Tuning:
    """Score every alpha in closed form; none below the level of the noise in the parts, none that leaves no freedom."""
    spectrum = Spectrum.of(known)
    alphas = [alpha for alpha in ALPHAS if alpha >= known.noise] or [ALPHAS[-1]]
    scores = {alpha: spectrum.score(alpha, known.total) for alpha in alphas}
    scores = {alpha: score for alpha, score in scores.items() if score < np.inf}
    if not scores:
        raise LearnError(
            f"About {known.total:,.0f} rows are too few for so many columns, whatever the ridge strength. "
            "Agree on fewer columns, or give more rows."
        )
    chosen, kept = min(scores, key=scores.__getitem__), (*scores.values(),)
    return Tuning(method="generalised cross-validation", chosen=chosen, candidates=(*scores,), scores=kept)


def solve_positive(system: Floats, target: Floats) -> Floats:
    """Cholesky, or least squares where the system is singular (alpha 0 and fewer rows than columns)."""
    try:
        out: Floats = cho_solve(cho_factor(system), target)
    except np.linalg.LinAlgError:
        out = np.linalg.lstsq(system, target, rcond=None)[0].astype(np.float64)
    return out
