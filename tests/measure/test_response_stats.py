"""Response phases on record against a plain count of the same games; what a refusal is worth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rejoinder.games import GAMES
from rejoinder.games.deal import DealRules
from rejoinder.games.deal.cards import JUST_SAY_NO
from rejoinder.games.responses import RESPONSE_NAMES
from rejoinder.games.session import Session
from rejoinder.kernel import rng
from rejoinder.measure.agents import Agent, baseline_agent, random_agent
from rejoinder.measure.analytics import PhaseFigures, phase_figures, refusal_value
from rejoinder.measure.match import play_match
from rejoinder.measure.response_stats import (
    AS_DEALT,
    BLANK,
    HELD,
    OUTCOMES,
    PAID_BOTH,
    PAID_CASH,
    PAID_PROPERTY,
    ROLES,
    Watched,
    play_refusals,
    watch,
)
from rejoinder.measure.search import searching

DEAL = GAMES["deal"]
MEDIUM, MICRO = DealRules(), DEAL.configurations["micro"]
ORDERED = DEAL.configurations["ordered"]
WORTH = {"property brown": 1, "property green": 4, "property pink": 2}
WORTH |= {f"cash {value}": value for value in (1, 2, 3, 4)}
RENT = {"brown": (1, 2), "green": (2, 4, 7), "pink": (1, 2, 4)}


@dataclass
class Phase:
    """A response phase as a person would note it."""

    game: int
    seat: int
    charged: int
    ordered: bool
    given: list[str] = field(default_factory=list)
    last: str = ""

    def paid(self) -> tuple[int, int]:
        """From the bank and from the properties; under ordered rules one of those first is two."""
        counts = [0, 0]
        for place, name in enumerate(self.given):
            is_property = "bank" not in name
            worth = WORTH[name.removeprefix("give ").removeprefix("bank ")]
            counts[is_property] += worth * (2 if self.ordered and is_property and not place else 1)
        return counts[0], counts[1]

    def told(self) -> tuple[int, int, int, str, int, int, int]:
        cash, taken = self.paid()
        if self.last == "just say no":
            outcome = "cancelled part-paid" if self.given else "cancelled at once"
        elif self.last == "yield":
            outcome = "yielded"
        else:
            kinds = ("cash" if cash else "") + ("property" if taken else "")
            outcome = f"paid in {'both' if cash and taken else kinds}"
        decisions = len(self.given) + (self.last in ("just say no", "yield"))
        return self.game, self.seat, self.charged, outcome, decisions, cash, taken


Choices = Counter[tuple[int, bool, frozenset[str], str]]  # charger's side, first, options, chosen


def kind_of(name: str) -> str:
    if name.startswith("give"):
        return "give cash" if name.startswith("give bank") else "give property"
    return {"just say no": "refuse"}.get(name, name)


def count_by_hand(
    rules: DealRules, agents: tuple[Agent, Agent], games: int, seed: int
) -> tuple[list[Phase], Any, Choices, list[float]]:
    """The same games, move by move in sessions, told by the names of moves alone."""
    phases: list[Phase] = []
    made: Choices = Counter()
    decisions = np.zeros((games, 2, 2), int)
    won = []
    for g in range(games):
        session = Session.start(DEAL, rules, seed=seed, index=g // 2, first_player=g // 2 % 2)
        choices = rng.stream(seed, g, rng.CHOICES)
        under_way: Phase | None = None
        while (seat := session.to_move) is not None:
            side = 0 if seat == g % 2 else 1
            decisions[g, 1 if under_way else 0, side] += 1
            owned = session.view(seat).own.properties  # type: ignore[attr-defined]
            options = frozenset(kind_of(move.name) for move in session.legal())
            session.apply(agents[side].choose(session.states, choices))
            name = next(e.name for e in reversed(session.history) if e.actor is not None)
            if under_way:
                made[1 - side, not under_way.given, options, kind_of(name)] += 1
                under_way.last = name
                if name.startswith("give"):
                    under_way.given.append(name)
                paid_up = sum(under_way.paid()) >= under_way.charged
                if name in ("just say no", "yield") or paid_up:
                    under_way = None
            elif name.startswith("rent"):
                colour = name.removeprefix("rent ")
                amounts = (0, *RENT[colour])
                charged = amounts[min(owned.get(colour, 0), len(amounts) - 1)]
                if charged:
                    under_way = Phase(g, seat, charged, rules.response == "ordered")
                    phases.append(under_way)
        assert session.utilities is not None
        won.append(session.utilities[g % 2])
    return phases, decisions, made, won


def choices_told(watched: Watched) -> Choices:
    return Counter(
        {
            (
                side,
                later == 0,
                frozenset(n for k, n in enumerate(RESPONSE_NAMES) if options >> k & 1),
                RESPONSE_NAMES[kind],
            ): int(watched.choices[side, later, options, kind])
            for side, later, options, kind in np.argwhere(watched.choices).tolist()
        }
    )


def figures_of(watched: Watched) -> PhaseFigures:
    return phase_figures(watched.phases, watched.choices.sum(axis=0), len(watched.won))


def as_told(watched: Watched) -> list[tuple[int, int, int, str, int, int, int]]:
    return [
        (game, seat, charged, OUTCOMES[outcome], cards, cash, given)
        for game, _, seat, outcome, charged, cards, cash, given, _ in watched.phases.tolist()
    ]


@pytest.mark.parametrize("rules", [MEDIUM, MICRO, ORDERED], ids=["medium", "micro", "ordered"])
def test_every_phase_is_as_a_person_would_note_it(rules: DealRules) -> None:
    agents = (baseline_agent(DEAL), random_agent(DEAL))
    games = 120 if rules is MICRO else 20
    phases, decisions, choices, won = count_by_hand(rules, agents, games, seed=3)
    watched = watch(DEAL, rules, *agents, games=games, seed=3)
    assert as_told(watched) == [phase.told() for phase in phases]
    assert (watched.decisions == decisions).all()
    assert choices_told(watched) == choices
    assert watched.won.tolist() == won
    for phase in watched.phases:
        assert phase["side"] == (phase["seat"] != phase["game"] % 2)
        mine = won[phase["game"]] if phase["side"] == 0 else -won[phase["game"]]
        assert phase["utility"] == mine
    assert len(phases) > 20


def test_every_way_to_end_a_phase_is_met() -> None:
    """Otherwise the comparison above would say less than it seems to."""
    agent = random_agent(DEAL)
    watched = watch(DEAL, MEDIUM, agent, agent, games=400, seed=1)
    phases = watched.phases
    assert set(phases["outcome"]) == set(range(len(OUTCOMES)))
    assert (phases["cash"] + phases["property"] > phases["charged"]).any()
    figures = figures_of(watched)
    assert sum(part.count for part in figures.outcomes) == figures.phases == len(phases)
    assert sum(part.share.value for part in figures.outcomes if part.share) == pytest.approx(1)
    assert sum(part.count for part in figures.amounts) == figures.phases
    assert [part.charged for part in figures.amounts] == [1, 2, 4, 7]


def test_choices_are_told_where_there_are_some() -> None:
    agent = random_agent(DEAL)
    choices = figures_of(watch(DEAL, MEDIUM, agent, agent, games=150, seed=1)).choices
    both = [choice for choice in choices if choice.chosen.keys() == {"give cash", "give property"}]
    assert [choice.first for choice in both] == [True, False]
    for choice in both:
        assert choice.times == sum(choice.chosen.values()) > 100
        assert 0.4 < choice.chosen["give cash"] / choice.times < 0.6
    assert min(len(choice.chosen) for choice in choices) == 2


@pytest.mark.parametrize("rules", [MEDIUM, ORDERED], ids=["medium", "ordered"])
def test_what_is_paid_in_full_covers_what_was_charged(rules: DealRules) -> None:
    agent = random_agent(DEAL)
    watched = watch(DEAL, rules, agent, agent, games=400, seed=1)
    phases = watched.phases
    paid = phases["cash"] + phases["property"]
    in_full = np.isin(phases["outcome"], [PAID_CASH, PAID_PROPERTY, PAID_BOTH])
    assert (paid >= phases["charged"])[in_full].all()
    assert (paid < phases["charged"])[~in_full].all()
    too_much = np.maximum(paid - phases["charged"], 0)
    overpaid = figures_of(watched).overpaid
    assert overpaid is not None
    assert overpaid.value == pytest.approx(too_much.mean())


def test_the_games_are_those_of_a_match() -> None:
    agents = (baseline_agent(DEAL), random_agent(DEAL))
    watched = watch(DEAL, MEDIUM, *agents, games=99, seed=7)
    match, _ = play_match(DEAL, DEAL.template(MEDIUM), agents, games=100, seed=7)
    assert len(watched.won) == match.games == 100
    assert watched.won.mean() == match.mean_utility
    won = play_refusals(DEAL, MEDIUM, *agents, deals=50, seed=7)
    there = ~np.isnan(won[:, :, AS_DEALT])
    assert (won[:, :, AS_DEALT][there] == watched.won.reshape(50, 2)[there]).all()


def test_hands_with_a_refusal_and_decks_without_one_are_left_out() -> None:
    agent = random_agent(DEAL)
    won = play_refusals(DEAL, MEDIUM, agent, agent, deals=40, seed=2)
    for deal in range(40):
        session = Session.start(DEAL, MEDIUM, seed=2, index=deal, first_player=deal % 2)
        for seat in range(2):
            holds = "just say no" in session.view(seat).hand  # type: ignore[attr-defined]
            left_out = holds or session.states[0]["deck"][JUST_SAY_NO] == 0
            assert np.isnan(won[deal, seat]).all() == left_out
            assert np.isnan(won[deal, seat]).any() == left_out


def test_a_refusal_is_worth_something_where_there_is_rent() -> None:
    agent = baseline_agent(DEAL)
    value = refusal_value(play_refusals(DEAL, MEDIUM, agent, agent, deals=1500, seed=1))
    assert value.right is not None
    assert value.right.low is not None
    assert value.right.low > 0.05
    assert 2000 < value.compared < 3000


def test_a_refusal_is_worth_exactly_nothing_where_nothing_is_demanded() -> None:
    agent = baseline_agent(DEAL)
    rules = DealRules(rent_copies=(0, 0, 0))
    won = play_refusals(DEAL, rules, agent, agent, deals=200, seed=1)
    there = ~np.isnan(won[:, :, HELD])
    assert there.sum() > 200
    assert (won[:, :, HELD] == won[:, :, BLANK])[there].all()
    value = refusal_value(won)
    assert value.right is not None
    assert (value.right.value, value.right.low, value.right.high) == (0, 0, 0)
    assert value.card is not None  # but it takes the place of a card that is worth something
    assert value.card.value < 0
    figures = figures_of(watch(DEAL, rules, agent, agent, games=20, seed=1))
    assert (figures.phases, figures.charged) == (0, None)
    assert (figures.amounts, figures.choices) == ([], [])


def test_without_refusals_in_the_deck_there_is_nothing_to_compare() -> None:
    agent = baseline_agent(DEAL)
    won = play_refusals(DEAL, DealRules(just_say_no=0), agent, agent, deals=5, seed=1)
    assert np.isnan(won).all()
    assert refusal_value(won).right is None


def test_games_without_response_phases_are_refused() -> None:
    for name in ("kuhn", "leduc"):
        game = GAMES[name]
        agent, rules = random_agent(game), game.configurations["standard"]
        with pytest.raises(ValueError, match="this game has no response phases"):
            watch(game, rules, agent, agent, games=2, seed=1)
        with pytest.raises(ValueError, match="this game has no response phases"):
            play_refusals(game, rules, agent, agent, deals=2, seed=1)


def test_agents_that_search_are_refused() -> None:
    plain = random_agent(DEAL)
    thinker = searching(plain, DEAL, 2)
    for pair in ((thinker, plain), (plain, thinker)):
        with pytest.raises(
            ValueError, match="search: random searches; here play goes by the policy alone"
        ):
            watch(DEAL, MICRO, *pair, games=2, seed=1)
        with pytest.raises(
            ValueError, match="search: random searches; here play goes by the policy alone"
        ):
            play_refusals(DEAL, MICRO, *pair, deals=2, seed=1)


def test_it_is_a_function_of_the_seed_and_tells_how_far_it_is() -> None:
    agent = baseline_agent(DEAL)
    heard: list[int] = []
    first = watch(DEAL, MICRO, agent, agent, games=120, seed=5, progress=heard.append)
    assert heard == [50, 100, 120]
    again = watch(DEAL, MICRO, agent, agent, games=120, seed=5)
    assert first.phases.tolist() == again.phases.tolist()
    other = watch(DEAL, MICRO, agent, agent, games=120, seed=6)
    assert first.phases.tolist() != other.phases.tolist()
    assert first.decisions.shape == (120, len(ROLES), 2)
