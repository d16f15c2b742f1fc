"""What an agent does in response phases, and what they are worth, with 95 % intervals.

Everything is a function of (policy, opponent, games, seed). `analyse` is the whole of it;
docs/analytics.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.games.responses import RESPONSE_NAMES, Responses, response_actions
from rejoinder.kernel.masks import mask_table
from rejoinder.measure.agents import Agent
from rejoinder.measure.best_response import policy_exploitability, response_infosets
from rejoinder.measure.estimates import Estimate, around, mean, ratio, share
from rejoinder.measure.lower_bounds import dear, thinking_bound
from rejoinder.measure.response_stats import (
    AS_DEALT,
    BLANK,
    HELD,
    OUTCOMES,
    ROLES,
    Watched,
    play_refusals,
    watch,
)
from rejoinder.measure.search import ANYWHERE
from rejoinder.methods.exact.tree import build_tree
from rejoinder.methods.learned import largest_mean_regrets
from rejoinder.methods.policies import AVERAGE

Role = Literal["initiator", "responder"]

# Of the analyses that reports and the gateway make: some seconds of one core.
GAMES, ATTACK_GAMES, SAMPLES, SEED = 4_000, 400, 100, 1


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RoleFigures(_Told):
    """Learning and play in one of the two roles: main play, or the answers of response phases."""

    infosets: int
    choices: int  # infosets with more than one action
    updates: int
    reach: float  # share of the whole table's
    mer_share: float  # what the role adds to MER: both together are it
    # means over infosets with a choice from here on
    regret_by_reach: float | None  # of the largest mean regret
    regret_by_updates: float | None
    positive_regret_by_reach: float | None  # the same of the mean over actions of max(regret, 0)
    positive_regret_by_updates: float | None
    entropy_by_reach: float | None  # of the average policy, in bits
    entropy_by_updates: float | None
    evenness_by_reach: float | None  # the entropy over that of a uniform policy
    evenness_by_updates: float | None
    # of play
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


class ChoiceFigures(_Told):
    """Answers where there was a choice between these kinds of answers, and no others."""

    first: bool  # of its phase, or a later one
    times: int
    chosen: dict[str, int]  # by kind


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
    choices: list[ChoiceFigures]  # first answers before later ones


class RefusalValue(_Told):
    """What a refusal (Just Say No) in the first hand is worth to its holder, in utility."""

    deals: int
    compared: int  # hands of those deals that had no refusal and could get one
    right: Estimate | None  # over a blank card: what it is worth to be able to refuse
    card: Estimate | None  # over the random card of the hand that it replaces
    right_wins: Estimate | None  # the same as differences of the win rate
    card_wins: Estimate | None


class ResponseExploitability(_Told):
    """What the agent gives away: by its answers in response phases, by main play, by both."""

    method: Literal["exact", "lower bound"]
    by_responses: Estimate
    by_main_play: Estimate
    whole: Estimate  # without any restriction
    samples: int | None  # lower bounds only: of a move of the attacker, who thinks ahead
    games: int | None  # lower bounds only: of each of the three matches


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
    attack_games: int | None = None,
    samples: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Analysis:
    """Analyse a trained agent; `rows` are those of the learner's table that it comes from.

    Without an opponent it plays against itself. Where the game cannot be enumerated, bounds on
    the exploitability take three matches of `attack_games` against an attacker who thinks ahead
    with so many `samples`; None leaves them out. `progress` hears how many of `steps` are done.
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
    if attack_games is not None or game.is_enumerable(rules):
        exploited = response_exploitability(
            game,
            rules,
            agent,
            games=attack_games or 0,
            samples=samples,
            seed=seed,
            progress=lambda attacks: progress(4 * games + attacks * dear(samples)),
        )
    return Analysis(
        opponent=opponent.name if opponent else "itself",
        games=games,
        seed=seed,
        roles=role_figures(rows, game, agent.abstraction, played),
        charges=_charges(played, itself=opponent is None),
        refusal=refusal_value(won) if _has_refusals(won) else None,
        exploitability=exploited,
    )


def steps(games: int, attack_games: int | None, samples: int) -> int:
    """What `analyse` counts its progress up to, in games by policies: each deal is played six times
    more, and attackers take their time. Without samples it is the number of games."""
    return 4 * (games + games % 2) + 3 * (attack_games or 0) * dear(samples)


def check_has_responses(game: Game) -> None:
    """Refuse a game that there is nothing to tell of."""
    if game.capability(Responses) is None:
        raise ValueError(f"{game.name}: this game has no response phases")


def role_figures(
    rows: Any, game: Game, abstraction: Abstraction, played: Watched
) -> dict[Role, RoleFigures]:
    """Regret, entropy and value, split by who decides: the initiator or the responder."""
    mask = response_actions(game, abstraction)
    main = [a for a in range(len(abstraction.actions)) if not mask >> a & 1]
    is_response = ~_legal(rows)[:, main].any(axis=1)
    reach = float(rows["reach"].sum())
    return {
        "initiator": _role(rows[~is_response], reach, played, ROLES.index("initiator")),
        "responder": _role(rows[is_response], reach, played, ROLES.index("responder")),
    }


def _role(rows: Any, reach: float, played: Watched, role: int) -> RoleFigures:
    # Where there is one action nothing is regretted: such infosets would only dilute the means.
    choices = rows[_legal(rows).sum(axis=1) > 1]
    legal = _legal(choices)
    actions = legal.sum(axis=1)
    largest = largest_mean_regrets(choices)
    means = choices["regret"] / np.where(choices["count"] > 0, choices["count"], 1.0)
    positive = np.where(legal, np.maximum(means, 0.0), 0.0).sum(axis=1) / actions
    policy = choices["policy"][:, AVERAGE]
    terms = policy * np.log2(policy, out=np.zeros_like(policy), where=policy > 0.0)
    entropy = np.abs(terms.sum(axis=1))
    evenness = entropy / np.log2(actions)
    by_reach, by_updates = choices["reach"], choices["updates"].astype(float)
    regret = float((largest_mean_regrets(rows) * rows["reach"]).sum())
    return RoleFigures(
        infosets=len(rows),
        choices=len(choices),
        updates=int(rows["updates"].sum()),
        reach=float(rows["reach"].sum()) / reach if reach > 0.0 else 0.0,
        mer_share=regret / reach if reach > 0.0 else 0.0,
        regret_by_reach=_weighted(largest, by_reach),
        regret_by_updates=_weighted(largest, by_updates),
        positive_regret_by_reach=_weighted(positive, by_reach),
        positive_regret_by_updates=_weighted(positive, by_updates),
        entropy_by_reach=_weighted(entropy, by_reach),
        entropy_by_updates=_weighted(entropy, by_updates),
        evenness_by_reach=_weighted(evenness, by_reach),
        evenness_by_updates=_weighted(evenness, by_updates),
        decisions=mean(_by_deal(played.decisions[:, role].sum(axis=1)) / 2),
        value=_value(played, role),
    )


def _legal(rows: Any) -> Any:
    return mask_table(rows["legal"], rows["regret"].shape[1])


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
    phases, choices, games = played.phases, played.choices, len(played.won)
    if itself:
        return {"either": phase_figures(phases, choices.sum(axis=0), games)}
    return {
        who: phase_figures(phases[phases["side"] == side], choices[side], games)
        for side, who in enumerate(("agent", "opponent"))
    }


def phase_figures(phases: Any, choices: Any, games: int) -> PhaseFigures:
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
        choices=_choices(choices),
    )


def _choices(counts: Any) -> list[ChoiceFigures]:
    """From int64[first or later, mask of kinds, kind]."""
    kinds = range(counts.shape[2])
    return [
        ChoiceFigures(
            first=later == 0,
            times=int(counts[later, options].sum()),
            chosen={
                RESPONSE_NAMES[k]: int(counts[later, options, k]) for k in kinds if options >> k & 1
            },
        )
        for later, options in np.argwhere(counts.sum(axis=2)).tolist()
        if options.bit_count() > 1
    ]


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
    games: int,
    samples: int,
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> ResponseExploitability:
    """What a best response gains that plays main actions, or answers, as the agent does.

    Exact, in the real game, where it can be enumerated; else lower bounds, in `games` each.
    """
    if game.is_enumerable(rules):
        tree = build_tree(game, rules, policy=agent.abstraction)
        policy, responses = agent.lookup.policy, response_infosets(tree)
        exact = [
            around(policy_exploitability(tree, policy, where).exploitability, 0.0)
            for where in (responses, ~responses, None)
        ]
        return _exploitability("exact", exact)
    answers = response_actions(game, game.concrete)
    bounds = []
    for k, where in enumerate((answers, ANYWHERE & ~answers, ANYWHERE)):
        found = thinking_bound(
            *(game, rules, agent),
            where=where,
            samples=samples,
            games=games,
            seed=seed,
            progress=lambda played, before=k * games: progress(before + min(played, games)),  # type: ignore[misc]
        )
        bounds.append(around(found.mean_utility, found.utility_error))
    return _exploitability("lower bound", bounds, samples, games + games % 2)


def _exploitability(
    method: Literal["exact", "lower bound"],
    found: list[Estimate],
    samples: int | None = None,
    games: int | None = None,
) -> ResponseExploitability:
    answers, main, whole = found
    return ResponseExploitability(
        method=method,
        by_responses=answers,
        by_main_play=main,
        whole=whole,
        samples=samples,
        games=games,
    )
