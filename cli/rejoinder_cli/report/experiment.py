"""Which runs are the paper's experiment (Wolf, 2025, Table 1)."""

from __future__ import annotations

from rejoinder.run.config import RunConfig, load_config

PAPER = "paper"  # the config of the experiment
PAPER_GAMES = 1_000
# Other seeds and ways of spreading the work are the same experiment; all else Table 1 fixes.
_FREE = {"seed", "order", "batch", "lag"}


def is_experiment(config: RunConfig) -> bool:
    """Whether a run is the paper's experiment, with whatever seed and length."""
    ours, papers = config.learning_fields(), load_config(PAPER).learning_fields()
    return all(ours[name] == papers[name] for name in papers.keys() - _FREE)
