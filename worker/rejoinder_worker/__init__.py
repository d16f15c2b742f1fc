"""The worker: takes leases, plays their units, pushes the deltas. It keeps nothing."""
