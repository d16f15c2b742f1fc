"""The rollout worker: takes leases, plays their games, pushes the deltas. It keeps nothing."""
