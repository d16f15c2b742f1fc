"""Studies: what should one choose? A grid of runs, a table, a file and one picture.

They live beside the benchmarks because they use the same instruments (the capacity model, its
costs, a whole system on this machine) and are as little needed to train or to play. They are not
among them: a benchmark compares with a peer and passes judgement, a study shows a trade-off.

Invariant: what was found is kept, under a key of everything that it depends on, and is never
worked out again unless asked for. So a study that was stopped goes on with the same command.
"""
