"""The look of everything radocraft shows: colours and fonts of the report, the review page and the study's figures.

There is one accent. Where a figure needs several colours they are those of Okabe
and Ito, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

BLUE, ORANGE, GREEN, VERMILION, SKY, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#6F6F6F"
FONTS = ("Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")
FIXED_FONTS = ("ui-monospace", "SFMono-Regular", "Menlo", "Liberation Mono", "DejaVu Sans Mono")


@dataclass(frozen=True)
class Palette:
    """Colours by what they are for."""

    ground: str
    card: str
    ink: str
    muted: str
    line: str
    accent: str
    tint: str
    counter: str
    good: str
    bad: str


LIGHT = Palette(
    ground="#FAFAF8",
    card="#FFFFFF",
    ink="#1B1F24",
    muted="#59616B",
    line="#E3E5E8",
    accent=BLUE,
    tint="#E6F1F8",
    counter="#848D97",
    good="#0B7A58",
    bad="#B3400A",
)
DARK = Palette(
    ground="#121518",
    card="#1A1E23",
    ink="#E9ECEF",
    muted="#A3ADB8",
    line="#2E353C",
    accent="#62B5EE",
    tint="#17303F",
    counter="#76808B",
    good="#4CC79F",
    bad="#F2905C",
)


def variables(palette: Palette) -> str:
    """A palette as CSS variables.

    Examples
    --------
    >>> variables(LIGHT).split(";")[0]
    '--ground: #FAFAF8'
    """
    return "; ".join(f"--{name}: {colour}" for name, colour in asdict(palette).items())


def style() -> str:
    """The rules every page begins with: light, or dark if the reader's system or the reader says so."""
    families = ", ".join(f'"{name}"' for name in FONTS)
    fixed = ", ".join(f'"{name}"' for name in FIXED_FONTS)
    return "\n".join(
        [
            f":root {{ {variables(LIGHT)}; color-scheme: light; --font: {families}, sans-serif; --fixed: {fixed}, "
            "monospace }",
            "@media screen and (prefers-color-scheme: dark) {",
            f"  :root:not([data-theme=light]) {{ {variables(DARK)}; color-scheme: dark }}",
            "}",
            f"@media screen {{ :root[data-theme=dark] {{ {variables(DARK)}; color-scheme: dark }} }}",
        ]
    )
