"""Methods that keep a row for each infoset: rollout CFR and the sampled walks."""

from __future__ import annotations

from rejoinder.methods.tabular.rollout_method import ROLLOUT
from rejoinder.methods.tabular.sampling_method import CHANCE, EXTERNAL, OUTCOME

METHODS = (ROLLOUT, EXTERNAL, OUTCOME, CHANCE)
