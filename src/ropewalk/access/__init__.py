"""Who asks, and what they may do: pure rules in `rights`, proofs of identity in the other files."""
