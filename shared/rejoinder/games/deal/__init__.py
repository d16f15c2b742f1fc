"""Modified two-player Monopoly Deal (Wolf, 2025), the flagship bounded one-sided response game."""

from __future__ import annotations

from rejoinder.games import contract
from rejoinder.games.base import Abstraction, Clamps, Game, concrete
from rejoinder.games.deal import abstraction, baselines, engine, phases, race
from rejoinder.games.deal.cards import (
    ABSTRACT_NAMES,
    DO_PASS,
    DO_YIELD,
    INTENT_RESPONSES,
    KIND_NAMES,
    MOVE_NAMES,
    OTHER,
    RESPONSES,
)
from rejoinder.games.deal.check import check
from rejoinder.games.deal.observation import observation
from rejoinder.games.deal.rules import CONFIGURATIONS, DealRules, max_decisions, template
from rejoinder.games.deal.view import DealView, view

contract.implement(
    engine.STATE,
    start=engine.start,
    current_player=engine.current_player,
    utility=engine.utility,
    legal_actions=abstraction.legal_actions,
    resolve=abstraction.resolve,
    apply=engine.apply,
    infoset_key=abstraction.infoset_key,
    observed=engine.observed,
    chance_outcomes=engine.chance_outcomes,
    shuffle_hidden=engine.shuffle_hidden,
    sample_outcome=engine.sample_outcome,
    resolve_chance=engine.resolve_chance,
    baseline=baselines.risk_aware,
    demand=phases.demand,
    payment=phases.payment,
    hand_refusal=phases.hand_refusal,
    blank_refusals=phases.blank_refusals,
)

_CLAMPS = Clamps(never=1 << OTHER, passive=1 << DO_PASS | 1 << DO_YIELD | 1 << OTHER)

GAME = Game(
    name="deal",
    title="Monopoly Deal (modified, two players)",
    players=2,
    dtype=engine.STATE,
    moves=MOVE_NAMES,
    outcomes=KIND_NAMES,
    abstractions=(
        concrete(MOVE_NAMES, responses=RESPONSES),
        Abstraction(
            "intent",
            abstraction.INTENT,
            ABSTRACT_NAMES,
            abstraction.intent_identifier,
            abstraction.describe_intent,
            _CLAMPS,
            abstraction.meaning,
            INTENT_RESPONSES,
        ),
        Abstraction(
            "progress",
            abstraction.PROGRESS,
            ABSTRACT_NAMES,
            abstraction.progress_identifier,
            abstraction.describe_progress,
            _CLAMPS,
            abstraction.meaning,
            INTENT_RESPONSES,
        ),
        Abstraction(
            "race",
            race.RACE,
            race.RACE_NAMES,
            race.race_identifier,
            race.describe_race,
            meaning=race.race_meaning,
            responses=race.RACE_RESPONSES,
        ),
    ),
    configurations=CONFIGURATIONS,
    template=template,
    view=view,
    max_decisions=max_decisions,
    check=check,
    starts=2,
    baseline="risk-aware",
    enumerable=frozenset({"micro", "micro-plain", "micro-ordered"}),
    later=("response", "cannot_refuse"),
    remembered=("cannot_refuse",),
    responses=phases.RESPONSES,
    is_default=True,
    observation=observation,
    max_utility=1.0,
    max_chance_events=lambda rules: int(rules.cards),
    terminal="rejoinder.games.deal.terminal",
    experiment="rejoinder.games.deal.experiment",
    checkpoint_format="rejoinder.games.deal.paper",
)

__all__ = ["GAME", "DealRules", "DealView"]
