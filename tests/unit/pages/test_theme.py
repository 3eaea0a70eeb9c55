"""Colours of the pages."""

import pytest

from radocraft.pages._theme import DARK, LIGHT, Palette


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize(("name", "least"), [("ink", 7), ("muted", 4.5), ("accent", 4.5), ("bad", 4.5), ("counter", 3)])
def test_colours_can_be_read_on_the_page(palette: Palette, name: str, least: float) -> None:
    """WCAG 2: contrast of text 4.5, of bars and lines 3."""
    for ground in (palette.card, palette.ground):
        light, dark = sorted((luminance(getattr(palette, name)), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= least
