"""Learners: from merged blocks to a classifier. They see sums, never rows."""

from radocraft.learners.drl import fit_drl
from radocraft.learners.fit import Fit, Tuning
from radocraft.learners.linked import LinkedRows, fit_linked
from radocraft.learners.matching import fit_matching

__all__ = ["Fit", "LinkedRows", "Tuning", "fit_drl", "fit_linked", "fit_matching"]
