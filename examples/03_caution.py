"""Caution: from the loss under the average matching of rows (0) to never being worse than the best peer (1)."""

import radocraft as rc

contract, tables = rc.example_peers(rows=10_000)
exact = rc.Policy.exact()  # made-up tables have nothing to protect, and only exact sums guarantee a loss
parts = [rc.share(table, contract, peer, policy=exact) for peer, table in tables.items()]

print("caution  expected loss  guaranteed loss")
for caution in (0.0, 0.25, 0.5, 1.0):
    losses = rc.learn(parts, contract, caution=caution).certificate
    assert losses is not None
    print(f"{caution:7g}  {losses.expected:13.4f}  {losses.guaranteed:15.4f}")

best = min(losses.peers, key=lambda peer: losses.peers[peer])
print(f"best peer alone ({best}): {losses.peers[best]:.4f}")
print("caution 1 is never worse:", losses.guaranteed <= losses.peers[best] * (1 + 1e-9))
