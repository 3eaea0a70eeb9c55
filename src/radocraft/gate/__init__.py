"""The gate: from a peer's tally to what may leave; arithmetic only, no files and no ledger."""
