"""The report and the review page, with one look.

In comes a model, or a release that waits for a person; out goes HTML that needs no network to open.
"""

from radocraft.pages._numbers import each, signed
from radocraft.pages._report import report, write_report
from radocraft.pages._server import ReviewServer
from radocraft.pages._theme import BLUE, FONTS, GREEN, GREY, LIGHT, ORANGE, SKY, VERMILION

__all__ = [
    "BLUE",
    "FONTS",
    "GREEN",
    "GREY",
    "LIGHT",
    "ORANGE",
    "SKY",
    "VERMILION",
    "ReviewServer",
    "each",
    "report",
    "signed",
    "write_report",
]
