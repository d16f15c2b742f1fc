"""Studies: what should one choose? A grid of runs, a table, a file and one picture.

They are not benchmarks: a benchmark compares with a peer and passes judgement, a study shows a
trade-off. Speeds are measured by the benchmarks' instruments (see `throughput`).

Invariant: what was found is kept, under a key of everything that it depends on, and is never
worked out again unless asked for. So a study that was stopped goes on with the same command.
"""
