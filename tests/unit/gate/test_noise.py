"""Noise: whole numbers with a normal distribution, never the same twice. Seeds are fixed: nothing is left to chance."""

import copy
import pickle

import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy import stats
from scipy.special import ndtr, ndtri

from radocraft.gate import _noise as module
from radocraft.gate._noise import Noise, _tails, precision_loss

DEVIATIONS = [1.0, 3.7, 50.0, 5000.0]


def draw(seed: int, size: int, sd: float) -> np.ndarray:
    return Noise(seed.to_bytes(32, "little")).draw(size, sd)


def edges(sd: float, bins: int = 60) -> np.ndarray:
    """Distinct rounding edges within four standard deviations."""
    return np.unique(np.floor(np.linspace(-4.0 * sd, 4.0 * sd, bins))) + 0.5


def counts(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(at, values), minlength=len(at) + 1)


@pytest.mark.parametrize("sd", DEVIATIONS)
def test_whole_numbers_with_the_probabilities_of_a_rounded_normal(sd: float) -> None:
    values, at = draw(1, 1_000_000, sd), edges(sd)
    expected = np.diff(np.concatenate([[0.0], ndtr(at / sd), [1.0]])) * len(values)
    assert np.array_equal(values, np.rint(values))
    assert stats.chisquare(counts(values, at), expected).pvalue > 1e-3


@pytest.mark.parametrize("sd", DEVIATIONS)
def test_distribution_is_that_of_opendp(sd: float) -> None:
    """OpenDP's discrete Gaussian has the variance it is given, a rounded normal that of its rounding (1/12) more."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    theirs = np.array((space >> dp.m.then_gaussian((sd**2 + 1 / 12) ** 0.5))([0] * 30_000), dtype=float)
    ours, at = draw(2, 30_000, sd), edges(sd, 25)
    table = np.stack([counts(ours, at), counts(theirs, at)])
    # OpenDP has no seed: one run in 10^9 would fail by chance
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-9
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-9


@pytest.mark.parametrize("sd", DEVIATIONS)
def test_moments(sd: float) -> None:
    values, variance = draw(3, 1_000_000, sd), sd**2 + 1 / 12
    standard = values / variance**0.5
    root = len(values) ** 0.5
    assert abs(standard.mean()) * root < 4.0
    assert abs((standard**2).mean() - 1.0) * root < 4.0 * 2**0.5
    assert abs((standard**3).mean()) * root < 4.0 * 15**0.5
    assert abs((standard**4).mean() - 3.0 + 1 / (120 * variance**2)) * root < 4.0 * 96**0.5


@pytest.mark.parametrize("limit", [3.0, 4.0, 4.5, 5.0])
def test_far_values_are_as_frequent_as_they_should_be(limit: float) -> None:
    values = draw(4, 5_000_000, 1e6)
    for side in (values, -values):
        expected = len(values) * ndtr(-limit)
        assert 0.001 < stats.poisson.cdf((side > limit * 1e6).sum(), expected) < 0.999


def test_far_beyond_what_63_bits_can_tell() -> None:
    """The rarest words give 13.5 standard deviations and more, with all digits of u."""
    heads = np.array([0, 0, 1, 2**52, 2**53 - 1, 2**53, 2**63 - 1], dtype=np.uint64)
    more = np.array([0, 2**60, 2**60, 0, 2**63, 0, 2**62, 0, 2**64 - 1, 0], dtype=np.uint64)
    tails = _tails(heads, lambda count: more[:count])
    assert tails[:2] == pytest.approx([2.0**-132, 2.0**-68], rel=1e-9)
    assert tails[2:4] == pytest.approx([1.5 * 2.0**-64, (2.0**52 + 0.25) * 2.0**-64], rel=2.0**-52)
    assert np.all(np.diff(tails) >= 0.0)
    assert tails[-1] == 0.5
    assert -ndtri(tails[0]) > 13.2


def test_ndtri_is_as_exact_as_the_proof_needs() -> None:
    """`precision_loss` takes 2^-49 relative in z, down to u = 2^-139."""
    random = np.random.default_rng(5)
    normal = random.normal(np.exp(-2.0), 0.002, 1000)  # where its two formulas meet, its worst place
    tails = np.concatenate([random.uniform(0.0, 0.5, 1000), 2.0 ** -random.uniform(1.0, 139.0, 1000), normal])
    with mp.workdps(60):
        for tail in tails:
            z = mp.mpf(-float(ndtri(tail)))
            error = (mp.ncdf(-z) - mp.mpf(float(tail))) / mp.npdf(z)
            assert abs(error) < abs(z) * mp.mpf(2) ** -49


@pytest.mark.parametrize("sd", [1.0, 1.5, 3.7, 50.0, 5000.0, 1e6, 1e9])
def test_probability_of_every_number_is_right_within_the_bound(sd: float) -> None:
    """The exact probability of a number, by finding the 191-bit words where it begins and ends."""
    random = np.random.default_rng(6)
    values = np.unique(np.rint(np.concatenate([[0.0, sd], random.uniform(0.0, 12.0, 60) * sd])))
    upper = [_words_beyond(value + 0.5, sd) for value in values]
    lower = [_words_beyond(value - 0.5, sd) if value else 2**191 for value in values]
    with mp.workdps(80):
        for value, low, high in zip(values, lower, upper, strict=True):
            inner, outer = max(0.0, value - 0.5) / mp.mpf(sd), (value + 0.5) / mp.mpf(sd)
            ideal = mp.ncdf(-inner) - mp.ncdf(-outer)
            off = abs(mp.log(mp.mpf(low - high) / mp.mpf(2) ** 192 / ideal))
            assert off < 3.0 * 2.0**-49 * (1.0 + float(inner)) * (sd + float(inner))


def _words_beyond(edge: float, sd: float) -> int:
    """How many of the 2^191 words give a number beyond an edge."""
    low, high = 0, 2**191
    while high - low > 1:
        middle = (low + high) // 2
        head, rest = divmod(middle, 2**128)
        more = np.array(divmod(rest, 2**64), dtype=np.uint64)
        tail = _tails(np.array([head], dtype=np.uint64), lambda count, more=more: more)
        beyond = np.rint(-sd * ndtri(tail))[0] > edge
        low, high = (middle, high) if beyond else (low, middle)
    return low


def test_precision_loss_grows_with_numbers_and_noise_and_is_small() -> None:
    assert precision_loss(0, 100.0) == 0.0
    assert precision_loss(1, 1.0) < 1e-11
    assert precision_loss(1_000_000, 1000.0) < 1e-4
    assert precision_loss(1, 0.1) == precision_loss(1, 1.0)
    assert precision_loss(10, 50.0) < precision_loss(11, 50.0) < precision_loss(11, 51.0)


def test_precision_loss_bounds_what_many_numbers_can_add() -> None:
    """The bound of one number, added over typical numbers with and without a row, stays under it."""
    for numbers, sd in [(1, 1.0), (20, 1000.0), (10_000, 1.0), (10_000, 1e6)]:
        z = np.abs(draw(7, numbers, 1e9) / 1e9)
        shifted = z + 4.0 / numbers**0.5
        bound = sum(3.0 * 2.0**-49 * float(((1.0 + at) * (sd + at)).sum()) for at in (z, shifted))
        assert bound < precision_loss(numbers, sd)


def test_same_seed_same_numbers_however_they_are_asked_for() -> None:
    whole = draw(8, 100_011, 1e6)
    noise = Noise((8).to_bytes(32, "little"))
    pieces = [noise.draw(size, 1e6).ravel() for size in (1, (2, 5), 40_000, (3, 20_000))]
    assert np.array_equal(np.concatenate(pieces), whole)


def test_first_words_are_those_of_chacha20() -> None:
    """RFC 8439: the stream of the zero key begins 76 b8 e0 ad a0 f1 3d 90."""
    word = int.from_bytes(bytes.fromhex("76b8e0ada0f13d90"), "little")
    sign, head = divmod(word, 2**63)
    with mp.workdps(40):
        z = -mp.sqrt(2) * mp.erfinv(2 * (mp.mpf(head) + 0.5) / mp.mpf(2) ** 64 - 1)
    assert Noise(bytes(32)).draw(1, 1e6)[0] == round(float(z) * 1e6) * (-1) ** sign


def test_the_rarest_words_go_on_in_a_second_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all 63 bits were zero: every number then lies beyond nine standard deviations, as 128 other bits say."""
    monkeypatch.setattr(module, "_REST", np.uint64(0))
    nonce = bytes(4) + (1).to_bytes(12, "little")
    second = Cipher(algorithms.ChaCha20(bytes(32), nonce), mode=None).encryptor().update(bytes(16 * 5000))
    tails = np.frombuffer(second, "<u8")[::2].astype(float) * 2.0**-128
    drawn = Noise(bytes(32)).draw(5000, 1e9) / 1e9
    assert np.abs(drawn) == pytest.approx(-ndtri(tails), rel=1e-9)
    assert np.abs(drawn).min() > 9.0


def test_no_number_is_drawn_twice() -> None:
    noise = Noise(bytes(32))
    drawn = np.concatenate([noise.draw(1000, 1e12) for _ in range(200)])
    assert len(np.unique(np.abs(drawn))) > len(drawn) - 5  # 0.02 pairs by chance


def test_fresh_noise_is_new_every_time() -> None:
    assert not np.intersect1d(Noise().draw(1000, 1e12), Noise().draw(1000, 1e12)).size


def test_streams_are_independent() -> None:
    size = 500_000
    first, second = draw(9, 2 * size, 1000.0) / 1000.0, draw(10, size, 1000.0) / 1000.0
    pairs = [(first[:size], second), (first[:size], first[size:]), (first[:-1], first[1:]), (first[:-7], first[7:])]
    for left, right in pairs:
        for change in (lambda z: z, np.abs, np.sign):
            assert abs(np.corrcoef(change(left), change(right))[0, 1]) * len(left) ** 0.5 < 4.0


@pytest.mark.parametrize(
    ("shape", "expected"), [((), ()), (0, (0,)), (3, (3,)), ((2, 0), (2, 0)), ((2, 3, 4), (2, 3, 4))]
)
def test_shapes(shape: int | tuple[int, ...], expected: tuple[int, ...]) -> None:
    drawn = Noise(bytes(32)).draw(shape, 10.0)
    assert drawn.shape == expected
    assert drawn.dtype == np.float64


def test_no_noise_is_zero_and_no_zero_is_negative() -> None:
    noise = Noise(bytes(32))
    assert not noise.draw((3, 3), 0.0).any()
    small = noise.draw(1000, 0.5)
    assert not np.signbit(small[small == 0.0]).any()


@pytest.mark.parametrize("sd", [-1.0, float("nan"), float("inf"), 2.0**41])
def test_deviation_that_makes_no_sense_is_refused(sd: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 2\\^40 grid steps"):
        Noise().draw(1, sd)


def test_short_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="A seed has 32 bytes, not 4"):
        Noise(b"seed")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_noise_is_not_copied(again) -> None:
    with pytest.raises(TypeError, match="a copy would repeat it"):
        again(Noise())


def test_seed_is_not_shown() -> None:
    seed = bytes(range(65, 97))
    noise = Noise(seed)
    assert seed not in (value for value in vars(noise).values())
    assert "ABC" not in repr(noise) + str(vars(noise))
