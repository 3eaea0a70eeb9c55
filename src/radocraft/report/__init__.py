"""The report: what was learned, from whom, how good it is and what left, as one HTML file for people.

It holds only what the model file holds, needs no network to open, and is drawn
without a chart library: the charts are SVG made here, so the file is small,
prints as it looks and stays readable where scripts are off.
"""

from radocraft.report.report import report, write_report

__all__ = ["report", "write_report"]
