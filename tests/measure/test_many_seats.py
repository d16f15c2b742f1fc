"""Matches and runs of a game of three players that is not zero-sum: utilities are known exactly."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from runtime import sequential, train_with
from sharing import GIVE, KEEP, SEATS, SHARING
from typer.testing import CliRunner, Result

from rejoinder.games import GAMES
from rejoinder.measure.agents import Agent, random_agent, trained_agent
from rejoinder.measure.lower_bounds import thinking_bound
from rejoinder.measure.match import MatchResult, Starts, play_match, seated
from rejoinder.measure.search import searching
from rejoinder.methods.policies import policy_dtype
from rejoinder.methods.tabular.table import table_of
from rejoinder.run.config import RunConfig, make_config
from rejoinder.run.rundir import RunDir
from rejoinder.transport.server import EmbeddedServer
from rejoinder_cli.main import app
from rejoinder_learner.sequential import train

RULES = SHARING.configurations["standard"]
START = SHARING.template(RULES)


@pytest.fixture(autouse=True)
def sharing_is_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAMES, SHARING.name, SHARING)


def always(move: int) -> Agent:
    keys = [n | bits << 2 for n in range(SEATS) for bits in range(2**n)]
    rows = np.zeros(len(keys), policy_dtype(2))
    rows["key"] = keys
    rows["policy"][:, :, move] = 1.0
    name = SHARING.moves[move]
    return trained_agent(name, SHARING.default_abstraction, table_of(rows), argmax=False)


def match(*agents: Agent, games: int = 300, starts: Starts = "alternate") -> list[MatchResult]:
    return list(play_match(SHARING, START, agents, games=games, seed=1, starts=starts))


@pytest.mark.parametrize("moves", [*itertools.product((KEEP, GIVE), repeat=SEATS)])
def test_every_agent_gets_its_expected_utility_whatever_seats_and_luck(
    moves: tuple[int, ...],
) -> None:
    """In the rotations of a deal each agent has had every place and all of the luck."""
    results = match(*(always(move) for move in moves))
    for mine, result in zip(moves, results, strict=True):
        others = sum(moves) - mine
        assert result.mean_utility == pytest.approx(1 + 1 + others - mine / 2)
        assert result.utility_error == pytest.approx(0.0, abs=1e-12)
        assert (result.games, result.unit, result.counts_wins) == (300, "points", False)


def test_intervals_hold_the_mean_of_random_play_for_every_agent() -> None:
    chance, held = random_agent(SHARING), 0
    for seed in range(40):
        results = play_match(SHARING, START, (chance,) * SEATS, games=900, seed=seed)
        held += sum(abs(r.mean_utility - 2.75) <= r.utility_error for r in results)
        for result in results:  # of a deal: 2 others give in half of 3 games, and I pay for mine
            variance = (2 * 0.25 + 0.25 * 0.25) / SEATS
            assert result.utility_error == pytest.approx(1.96 * (variance / 300) ** 0.5, rel=0.25)
    assert held >= 0.9 * 40 * SEATS


@pytest.mark.parametrize(
    ("starts", "places"), [("agent", (0, 1, 2)), ("opponent", (2, 0, 1)), ("alternate", (1, 1, 1))]
)
def test_who_starts(starts: Starts, places: tuple[int, ...]) -> None:
    """The seat counts its number; luck is 1 on average, and alike for all in the end."""
    results = match(*[always(KEEP)] * SEATS, games=9_000, starts=starts)
    for place, result in zip(places, results, strict=True):
        assert result.mean_utility == pytest.approx(place + 1, abs=2 * result.utility_error + 1e-9)


def test_agents_of_different_types_meet() -> None:
    """One thinks ahead, one has a policy, one plays at random."""
    thinker = searching(random_agent(SHARING), SHARING, 60)
    results = match(thinker, always(GIVE), random_agent(SHARING), games=30)
    assert results[0].mean_utility > results[2].mean_utility > results[1].mean_utility


def test_seats_are_filled_by_one_opponent_or_one_each() -> None:
    keep, give = always(KEEP), always(GIVE)
    assert seated(SHARING, keep, [give]) == (keep, give, give)
    assert seated(SHARING, keep, [give, keep]) == (keep, give, keep)
    with pytest.raises(ValueError, match=r"sharing has 3 players: name one opponent .* 2, not 3"):
        seated(SHARING, keep, [give] * 3)
    with pytest.raises(ValueError, match="sharing has 3 players, not 2"):
        play_match(SHARING, START, (keep, give), games=3, seed=1)


def test_games_are_rounded_up_to_whole_deals() -> None:
    assert match(*[always(KEEP)] * SEATS, games=4)[0].games == 6


def test_bounds_of_exploitability_are_refused() -> None:
    with pytest.raises(ValueError, match="sharing has 3 and is not zero-sum"):
        thinking_bound(SHARING, RULES, always(KEEP), samples=10, games=30)


def config(method: str) -> RunConfig:
    fields = {"game": "sharing", "games": 400, "batch": 2, "eval_every": 200, "eval_games": 100}
    return make_config(fields | {"method.name": method, **_QUICK.get(method, {})})


_QUICK: dict[str, dict[str, int]] = {
    "rollout": {"method.rollouts": 4},
    "external": {"method.iterations": 20},
}


@pytest.mark.parametrize("method", _QUICK)
def test_a_run_learns_to_keep_and_is_evaluated_by_workers(
    method: str, server: EmbeddedServer, tmp_path: Path
) -> None:
    run = RunDir.create(tmp_path / "run", config(method))
    got = train_with(server, run, 2)
    assert got == sequential(config(method))
    final = run.metrics()[-1]["matches"]["random"]
    assert final.keys() == {"mean_utility", "utility_error", "games"}
    assert final["games"] == 102
    # Who keeps has 3 against two at random: 1 for the seat, 1 for luck, 1 from the others.
    assert final["mean_utility"] == pytest.approx(3.0, abs=0.25)


def test_eval_names_opponents_for_all_seats(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(RunDir.create(path, config("external")))

    def evaluate(*options: str) -> Result:
        asked = ["eval", str(path), "--games", "300", *options]
        return CliRunner().invoke(app, asked)

    told = json.loads(evaluate("--json").stdout)
    assert (told["games"], told["unit"]) == (300, "points")
    assert [other["name"] for other in told["opponents"]] == ["random", "random"]
    assert told["mean_utility"] > told["opponents"][0]["mean_utility"] + 0.3
    assert "win_rate" not in told
    both = json.loads(evaluate("--opponent", "random", "--opponent", str(path), "--json").stdout)
    ours, (chance, same) = both["mean_utility"], both["opponents"]
    assert ours == pytest.approx(2.5, abs=0.1)
    assert same["mean_utility"] == pytest.approx(2.5, abs=0.1)
    assert chance["mean_utility"] == pytest.approx(1.75, abs=0.1)
    assert "points a game, 300 games" in evaluate().stdout
    refused = evaluate(*["--opponent", "random"] * 3)
    assert refused.exit_code != 0
    assert "sharing has 3 players: name one opponent" in str(refused.output)


def test_a_game_of_three_is_not_played_by_one_person_and_one_agent(tmp_path: Path) -> None:
    train(RunDir.create(tmp_path / "run", config("external")))
    refused = CliRunner().invoke(app, ["play", str(tmp_path / "run")])
    assert refused.exit_code != 0
    assert "sharing has 3 players; here one person meets one agent" in str(refused.output)
