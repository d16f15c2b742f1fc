"""How good a policy is: agents, matches, best responses."""
