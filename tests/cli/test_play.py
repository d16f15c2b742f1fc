"""`rejoinder play`: a person at the table, played through standard input."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from command import run, run_json

from rejoinder.games.deal import DealRules
from rejoinder.games.deal.cards import JUST_SAY_NO, RENT_CARD, YIELD
from rejoinder.games.deal.scenario import scenario
from rejoinder.games.session import Session
from rejoinder_cli.view import terminal_view

FIRST_MOVES = "1\n" * 600  # always the first move of the list, to the end


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    for config in ("paper", "tiny", "kuhn-rollout", "leduc-rollout"):
        run_json("train", config, "--games", "20", "--run", folder / config)
    return {
        config: folder / config for config in ("paper", "tiny", "kuhn-rollout", "leduc-rollout")
    }


def played(*arguments: str | Path, stdin: str = FIRST_MOVES) -> str:
    result = run("play", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""  # the status line is for terminals
    return result.stdout


def played_json(*arguments: str | Path, stdin: str = FIRST_MOVES) -> dict[str, Any]:
    result = run("play", *arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("config", ["paper", "tiny", "kuhn-rollout", "leduc-rollout"])
@pytest.mark.parametrize("seat", [(), ("--second",)])
def test_a_whole_game_ends_with_a_result(
    runs: dict[str, Path], config: str, seat: tuple[str, ...]
) -> None:
    told = played(runs[config], "--seed", "3", *seat)
    assert re.search(r"The game is over\. (You win|The agent wins|A draw) \([+-]\d+\)\.", told)
    ended = played_json(runs[config], "--seed", "3", *seat)
    assert ended.keys() == {"finished", "utility", "winner", "seed"}
    assert ended["finished"] is True
    assert ended["seed"] == 3
    utility = ended["utility"]
    assert isinstance(utility, float)
    assert ended["winner"] == ("you" if utility > 0 else "agent" if utility < 0 else None)
    assert f"({utility:+g})" in told


def test_who_leaves_has_no_result(runs: dict[str, Path]) -> None:
    assert played_json(runs["tiny"], "--seed", "5", stdin="q\n") == {
        "finished": False,
        "utility": None,
        "winner": None,
        "seed": 5,
    }


def test_the_banner_has_the_keys_on_a_line_of_their_own(runs: dict[str, Path]) -> None:
    title, keys, *_ = played(runs["paper"], "--seed", "3", stdin="q\n").splitlines()
    assert title == f"Monopoly Deal (modified, two players) against {runs['paper']}, seed 3."
    assert keys.startswith("A number plays that move · p:")
    assert len(keys) <= 80


def test_a_main_phase_says_whose_turn_the_goal_and_what_rent_charges(
    runs: dict[str, Path],
) -> None:
    told = played(runs["paper"], "--seed", "3", stdin="1\nq\n")
    assert "Your turn, play 1 of 2 · 2 complete sets win · deck 71" in told
    assert "Your turn, play 2 of 2 · 2 complete sets win · deck 71" in told
    assert "rent pink: charges nothing" in told  # before the first property
    assert "You     pink 1/3 · bank 0" in told
    assert "rent pink: charges 1" in told
    assert " 1 × " not in told


def test_screens_fit_a_terminal(runs: dict[str, Path]) -> None:
    for seed in range(8):
        told = played(runs["paper"], "--seed", str(seed))
        for screen in told.partition("The game is over.")[0].split("\n> "):
            if "charges rent" not in screen:
                assert len(screen.splitlines()) < 24, screen


def test_a_response_phase_is_announced_with_what_is_owed(runs: dict[str, Path]) -> None:
    told = "".join(played(runs["paper"], "--seed", str(seed)) for seed in range(8))
    title = r"^The agent charges rent \w+: you owe (\d), paid (\d), (\d) to go\.$"
    titles = re.findall(title, told, re.MULTILINE)
    assert titles
    assert all(int(owed) - int(paid) == int(left) > 0 for owed, paid, left in titles)
    assert re.search(r"^  1  give \w+ .*, worth \d", told, re.MULTILINE)
    assert re.search(r"^>   you: give .*, worth \d \(\d+ of \d paid\)$", told, re.MULTILINE)
    assert "initiator" not in told


def test_the_agents_responses_are_told() -> None:
    session = scenario(
        hands=[["rent green", "rent green"], ["just say no"]],
        properties=[["property green", "property green"], []],
        banks=[[], ["cash 3", "cash 1"]],
    )
    assert session.to_move == 0
    told: list[str] = []
    tells = terminal_view(session, 0)
    for move in ("rent green", "give bank cash 3", "just say no"):
        before, known = session.view(0), len(session.seen_by(0))
        session.apply(move)
        told += tells.events(before, session.seen_by(0)[known:])
    assert told[:3] == [
        "you: rent green: charges 4",
        "agent: give bank cash 3, worth 3 (3 of 4 paid)",
        "agent: just say no: ends the payment (3 of 4 paid)",
    ]


def test_a_property_that_counts_double_is_told_so() -> None:
    session = scenario(
        rules=DealRules(response="ordered"),
        hands=[[], ["rent green", "cash 1"]],
        properties=[["property brown"], ["property green", "property green"]],
        banks=[["cash 1"], []],
        to_move=1,
    )
    tells = terminal_view(session, 0)
    assert "a property given as the first card counts double" in tells.rules()
    told: list[str] = []
    for move in ("rent green", "give property brown", "give bank cash 1"):
        before, known = session.view(0), len(session.seen_by(0))
        session.apply(move)
        told += tells.events(before, session.seen_by(0)[known:])
        told += [tells.move(session.view(0), m.number) for m in session.legal()]
    assert told == [
        "agent: rent green: charges 4",
        "give bank cash 1, worth 1",
        "give property brown, worth 1, counts 2",
        "you: give property brown, worth 1, counts 2 (2 of 4 paid)",
        "give bank cash 1, worth 1",
        "you: give bank cash 1, worth 1 (3 of 4 paid)",
        "yield: nothing left to give",
    ]
    plain = terminal_view(Session.start("deal-medium", seed=1), 0)
    assert "double" not in plain.rules()


def test_every_move_of_deal_can_be_told() -> None:
    session = Session.start("deal-medium", seed=1)
    tells = terminal_view(session, 0)
    names = [tells.move(session.view(0), move) for move in range(len(session.game.moves))]
    assert len(set(names)) == len(names)
    assert names[RENT_CARD] == "rent brown: charges nothing"
    assert names[JUST_SAY_NO].startswith("just say no: ")
    assert names[YIELD].startswith("yield: ")


@pytest.mark.parametrize("game", ["deal-medium", "deal-tiny", "kuhn", "leduc"])
@pytest.mark.parametrize("person", [0, 1])
def test_cards_that_the_agent_draws_are_not_told(game: str, person: int) -> None:
    session = Session.start(game, seed=4)
    tells = terminal_view(session, person)
    pick = random.Random(4)
    before, known = None, 0
    while True:
        happened, seen = session.history[known:], session.seen_by(person)[known:]
        told = tells.events(before, seen)
        hidden = [e for e, shown in zip(happened, seen, strict=True) if shown.number < 0]
        if game.startswith("deal") and before:
            draws = [line for line in told if line.startswith("agent draws: ")]
            assert all(re.fullmatch(r"agent draws: \d+ cards?", line) for line in draws)
            assert sum(int(line.split()[2]) for line in draws) == len(hidden)
        elif not game.startswith("deal"):
            assert len(told) == len(seen) - len(hidden)
        if session.over:
            break
        before, known = session.view(person), len(session.history)
        session.apply(pick.choice(session.legal()).number)


def test_the_agents_hand_is_shown_at_the_end_only(runs: dict[str, Path]) -> None:
    told, _, end = played(runs["paper"], "--seed", "3").partition("The game is over.")
    hands = re.findall(r"^Agent .*?^  hand  (.*?)$", told, re.MULTILINE | re.DOTALL)
    assert hands
    assert all(re.fullmatch(r"\d+ cards?", hand.strip()) for hand in hands)
    (last,) = re.findall(r"^Agent .*?^  hand  (.*?)$", end, re.MULTILINE | re.DOTALL)
    assert not re.fullmatch(r"\d+ cards?", last.strip())


def test_help_tells_the_rules_and_the_keys(runs: dict[str, Path]) -> None:
    told = played(runs["paper"], "--seed", "3", stdin="?\nq\n").partition("\n> ")[2]
    assert "docs/rules.md" in told
    for topic in ("Goal", "Turn", "Rent", "Response", "Just say no", "Draw", "A number plays"):
        assert re.search(rf"^{topic}", told, re.MULTILINE), topic
    assert "with an empty hand 5" in told
    assert all(len(line) <= 80 for line in told.splitlines())
    race = played(runs["tiny"], "--seed", "3", stdin="?\nq\n")
    assert "1 complete set wins" in race
    assert "\nRent" not in race
    kuhn = played(runs["kuhn-rollout"], "--seed", "3", stdin="?\nq\n").partition("\n> ")[2]
    assert kuhn.startswith("Kuhn poker.\nA number plays that move")
