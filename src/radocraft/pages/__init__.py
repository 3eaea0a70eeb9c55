"""The report and the review page, with a common look.

In comes a model, or a release that waits for review. Out goes HTML that opens without a network.

To add a kind of chart: `_charts.py`; show it in the section where it belongs, such as `_outcome.py` or `_weights.py`.
To add a section of the report: a file beside `_people.py`, listed in `_report.py`.
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
