"""Learners: from merged blocks to a classifier. They see sums, never rows."""

from radocraft.learners.drl import fit_drl
from radocraft.learners.fit import Fit, Tuning
from radocraft.learners.matching import fit_matching

__all__ = ["Fit", "Tuning", "fit_drl", "fit_matching"]
