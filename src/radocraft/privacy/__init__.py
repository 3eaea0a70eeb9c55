"""What a peer has let leave, what that gives away together, and differential privacy."""
