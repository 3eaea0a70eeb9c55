"""The gate: from a peer's sums to what may leave."""
