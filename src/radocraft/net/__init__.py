"""Peers on a network: requests, parts and models over Arrow Flight with mutual TLS.

Read `messages` (what is said), `identity` and `authority` (who says it), `door`
(who is let in), `service` and `channel` (the two ends of a connection), then
`desk` (a peer and its jobs), `peer` (it is asked), `push` (it dials out) and
`collection`, `mailbox`, `collector` (the learner's side). Nothing here can reach a
row: what answers a request is given to the desk from outside.
"""
