"""What an agent does in response phases, and what they are worth, with 95 % intervals.

Everything is a function of (policy, opponent, games, seed). `analyse` is the whole of it;
docs/analytics.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.cfr.policy import AVERAGE
from rejoinder.cfr.rollout import largest_mean_regrets
from rejoinder.cfr.tree import build_tree
from rejoinder.evaluate.agents import Agent
from rejoinder.evaluate.estimates import Estimate, around, mean, ratio, share
from rejoinder.evaluate.exploit import policy_exploitability, response_infosets
from rejoinder.evaluate.phases import (
    AS_DEALT,
    BLANK,
    HELD,
    OUTCOMES,
    ROLES,
    Watched,
    play_refusals,
    watch,
)
from rejoinder.evaluate.respond import best_response_bound
from rejoinder.games.base import Abstraction, Game, Rules

Role = Literal["initiator", "responder"]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RoleFigures(_Told):
    """Learning and play in one of the two roles: main play, or the answers of response phases."""

    infosets: int
    choices: int  # infosets with more than one action; the figures of policies are about these
    updates: int
    reach: float  # share of the whole table's
    regret_by_reach: float | None  # mean over infosets of the largest mean regret, as in MER
    regret_by_updates: float | None
    positive_regret_by_reach: float | None  # the same of the mean over actions of max(regret, 0)
    positive_regret_by_updates: float | None
    entropy_by_reach: float | None  # of the average policy, in bits
    entropy_by_updates: float | None
    evenness_by_reach: float | None  # the entropy over that of a uniform policy
    evenness_by_updates: float | None
    decisions: Estimate  # in a game, of both players
    value: Estimate | None  # mean utility of who decides, over decisions


class OutcomeFigures(_Told):
    """Phases that ended in one way."""

    outcome: str
    count: int
    share: Estimate | None  # of all phases
    utility: Estimate | None  # mean, of who charged


class AmountFigures(_Told):
    """Phases in which one amount was charged."""

    charged: int
    count: int
    outcomes: dict[str, int]
    utility: Estimate | None


class PhaseFigures(_Told):
    """The response phases that one side, or either, has started."""

    phases: int
    by_seat: tuple[int, int]  # of who charged
    per_game: Estimate
    charged: Estimate | None  # means over phases from here on
    paid_in_cash: Estimate | None
    paid_in_property: Estimate | None
    overpaid: Estimate | None  # above what was charged
    cards: Estimate | None  # decisions of the responder
    utility: Estimate | None  # of who charged
    outcomes: list[OutcomeFigures]
    amounts: list[AmountFigures]


class RefusalValue(_Told):
    """What a refusal (Just Say No) in the first hand is worth to its holder, in utility."""

    deals: int
    compared: int  # hands of those deals that had no refusal and could get one
    right: Estimate | None  # over a blank card: what it is worth to be able to refuse
    card: Estimate | None  # over the random card of the hand that it replaces
    right_wins: Estimate | None  # the same as differences of the win rate
    card_wins: Estimate | None


class ResponseExploitability(_Told):
    """What the agent gives away by its answers in response phases alone."""

    method: Literal["exact", "lower bound"]
    by_responses: Estimate
    by_main_play: float | None  # exact only
    whole: float | None  # exact only: without any restriction
    abstraction: str | None  # lower bound only: the responder's
    training_games: int | None
    games: int | None


class Analysis(_Told):
    """Everything about an agent's response phases."""

    opponent: str  # "itself", or a name
    games: int
    seed: int
    roles: dict[Role, RoleFigures]
    charges: dict[str, PhaseFigures]  # by who charged: "either" in play against itself
    refusal: RefusalValue | None  # None: the deck has no such card
    exploitability: ResponseExploitability | None  # None: was not asked for


def analyse(
    game: Game,
    rules: Rules,
    agent: Agent,
    rows: Any,
    *,
    opponent: Agent | None = None,
    games: int,
    seed: int,
    training_games: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Analysis:
    """Analyse a trained agent; `rows` are those of the learner's table that it comes from.

    Without an opponent it plays against itself. Where the game cannot be enumerated,
    exploitability takes a responder of so many `training_games`; None leaves it out.
    `progress` hears how many of `steps` are done.
    """
    check_has_responses(game)
    games += games % 2
    played = watch(game, rules, agent, opponent or agent, games=games, seed=seed, progress=progress)
    won = play_refusals(
        game,
        rules,
        agent,
        opponent or agent,
        deals=games // 2,
        seed=seed,
        progress=lambda deals: progress(games + 6 * deals),
    )
    exploited = None
    if training_games is not None or game.is_enumerable(rules):
        exploited = response_exploitability(
            game,
            rules,
            agent,
            training_games=training_games or 0,
            games=games,
            seed=seed,
            progress=lambda trained: progress(4 * games + trained),
        )
    return Analysis(
        opponent=opponent.name if opponent else "itself",
        games=games,
        seed=seed,
        roles=role_figures(rows, agent.abstraction, played),
        charges=_charges(played, itself=opponent is None),
        refusal=refusal_value(won) if _has_refusals(won) else None,
        exploitability=exploited,
    )


def steps(games: int, training_games: int | None) -> int:
    """What `analyse` counts its progress up to: each deal is played six times more."""
    return 4 * (games + games % 2) + (training_games or 0)


def check_has_responses(game: Game) -> None:
    """Refuse a game that there is nothing to tell of."""
    if game.responses is None:
        raise ValueError(f"{game.name}: this game has no response phases")


def role_figures(rows: Any, abstraction: Abstraction, played: Watched) -> dict[Role, RoleFigures]:
    """Regret, entropy and value, split by who decides: the initiator or the responder."""
    is_response = rows["legal"] & ~np.uint64(abstraction.responses) == 0
    reach = float(rows["reach"].sum())
    return {
        "initiator": _role(rows[~is_response], reach, played, ROLES.index("initiator")),
        "responder": _role(rows[is_response], reach, played, ROLES.index("responder")),
    }


def _role(rows: Any, reach: float, played: Watched, role: int) -> RoleFigures:
    legal = _legal(rows)
    actions = legal.sum(axis=1)
    means = rows["regret"] / np.where(rows["count"] > 0, rows["count"], 1.0)
    positive = np.where(legal, np.maximum(means, 0.0), 0.0).sum(axis=1) / np.maximum(actions, 1)
    policy = rows["policy"][:, AVERAGE]
    terms = policy * np.log2(policy, out=np.zeros_like(policy), where=policy > 0.0)
    entropy = np.abs(terms.sum(axis=1))
    choice = actions > 1
    evenness = entropy[choice] / np.log2(actions[choice])
    by_reach, by_updates = rows["reach"], rows["updates"].astype(float)
    return RoleFigures(
        infosets=len(rows),
        choices=int(choice.sum()),
        updates=int(rows["updates"].sum()),
        reach=float(by_reach.sum()) / reach if reach > 0.0 else 0.0,
        regret_by_reach=_weighted(largest_mean_regrets(rows), by_reach),
        regret_by_updates=_weighted(largest_mean_regrets(rows), by_updates),
        positive_regret_by_reach=_weighted(positive, by_reach),
        positive_regret_by_updates=_weighted(positive, by_updates),
        entropy_by_reach=_weighted(entropy[choice], by_reach[choice]),
        entropy_by_updates=_weighted(entropy[choice], by_updates[choice]),
        evenness_by_reach=_weighted(evenness, by_reach[choice]),
        evenness_by_updates=_weighted(evenness, by_updates[choice]),
        decisions=mean(_by_deal(played.decisions[:, role].sum(axis=1)) / 2),
        value=_value(played, role),
    )


def _legal(rows: Any) -> Any:
    actions = np.arange(rows["regret"].shape[1], dtype=np.uint64)
    return (rows["legal"][:, None] >> actions) & np.uint64(1) == 1


def _weighted(values: Any, weights: Any) -> float | None:
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total > 0.0 else None


def _value(played: Watched, role: int) -> Estimate | None:
    """The mean utility of who decides; the opponent's is the agent's, less than zero."""
    made = played.decisions[:, role]
    total = (made[:, 0] - made[:, 1]) * played.won
    return ratio(_by_deal(total), _by_deal(made.sum(axis=1)))


def _by_deal(values: Any) -> Any:
    """Sums over the two games of each deal."""
    return values.reshape(-1, 2).sum(axis=1)


def _charges(played: Watched, *, itself: bool) -> dict[str, PhaseFigures]:
    phases, games = played.phases, len(played.won)
    if itself:
        return {"either": phase_figures(phases, games)}
    return {
        "agent": phase_figures(phases[phases["side"] == 0], games),
        "opponent": phase_figures(phases[phases["side"] == 1], games),
    }


def phase_figures(phases: Any, games: int) -> PhaseFigures:
    """Counts and means of response phases that were met in so many games (whole pairs)."""

    def count(of: Any) -> Any:
        return _sum_by_deal(of, np.ones(len(of)), games)

    def per_phase(of: Any, values: Any) -> Estimate | None:
        return ratio(_sum_by_deal(of, values, games), count(of))

    def utility(of: Any) -> Estimate | None:
        return per_phase(of, of["utility"])

    paid = phases["cash"] + phases["property"]
    by_outcome = [phases[phases["outcome"] == k] for k in range(len(OUTCOMES))]
    by_amount = [phases[phases["charged"] == c] for c in np.unique(phases["charged"])]
    return PhaseFigures(
        phases=len(phases),
        by_seat=(int((phases["seat"] == 0).sum()), int((phases["seat"] == 1).sum())),
        per_game=mean(count(phases) / 2),
        charged=per_phase(phases, phases["charged"]),
        paid_in_cash=per_phase(phases, phases["cash"]),
        paid_in_property=per_phase(phases, phases["property"]),
        overpaid=per_phase(phases, np.maximum(paid - phases["charged"], 0)),
        cards=per_phase(phases, phases["cards"]),
        utility=utility(phases),
        outcomes=[
            OutcomeFigures(
                outcome=name,
                count=len(part),
                share=share(count(part), count(phases)),
                utility=utility(part),
            )
            for name, part in zip(OUTCOMES, by_outcome, strict=True)
        ],
        amounts=[
            AmountFigures(
                charged=int(part["charged"][0]),
                count=len(part),
                outcomes={
                    name: int((part["outcome"] == k).sum()) for k, name in enumerate(OUTCOMES)
                },
                utility=utility(part),
            )
            for part in by_amount
        ],
    )


def _sum_by_deal(phases: Any, values: Any, games: int) -> Any:
    return np.bincount(phases["game"] // 2, weights=values, minlength=games // 2)


def refusal_value(won: Any) -> RefusalValue:
    """From the utilities of `play_refusals`: both seats of a deal are one observation."""
    there = ~np.isnan(won[:, :, HELD])
    utility, wins = np.where(there[:, :, None], won, 0.0), (won > 0.0).astype(float)

    def gain(of: Any, over: int) -> Estimate | None:
        return ratio((of[:, :, HELD] - of[:, :, over]).sum(axis=1), there.sum(axis=1))

    return RefusalValue(
        deals=len(won),
        compared=int(there.sum()),
        right=gain(utility, BLANK),
        card=gain(utility, AS_DEALT),
        right_wins=gain(wins, BLANK),
        card_wins=gain(wins, AS_DEALT),
    )


def _has_refusals(won: Any) -> bool:
    return bool((~np.isnan(won)).any())


def response_exploitability(
    game: Game,
    rules: Rules,
    agent: Agent,
    *,
    training_games: int,
    games: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> ResponseExploitability:
    """What a best response gains that plays main actions as the agent does.

    Exact, in the real game, where it can be enumerated; else the lower bound of a responder that
    was trained for so many games and measured in `games` of its own. It sees what the agent sees:
    a richer view has too many infosets to learn from response phases alone.
    """
    if game.is_enumerable(rules):
        tree = build_tree(game, rules, policy=agent.abstraction)
        policy, responses = agent.book.policy, response_infosets(tree)
        found = policy_exploitability(tree, policy, responses).exploitability
        return ResponseExploitability(
            method="exact",
            by_responses=around(found, 0.0),
            by_main_play=policy_exploitability(tree, policy, ~responses).exploitability,
            whole=policy_exploitability(tree, policy).exploitability,
            abstraction=None,
            training_games=None,
            games=None,
        )
    bound = best_response_bound(
        game,
        rules,
        agent,
        abstraction=agent.abstraction,
        training_games=training_games,
        match_games=games,
        seed=seed,
        where=agent.abstraction.responses,
        progress=progress,
    )
    return ResponseExploitability(
        method="lower bound",
        by_responses=around(bound.exploitability, bound.match.utility_error),
        by_main_play=None,
        whole=None,
        abstraction=bound.abstraction,
        training_games=training_games,
        games=bound.match.games,
    )
