"""What must be true of every game, configuration and abstraction that is registered."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from documented import documented_game
from synthetic import registered

from rejoinder.games import GAMES, find_game, game_names, queries
from rejoinder.games.base import Abstraction, Game, Rules, States
from rejoinder.games.clamps import Clamps
from rejoinder.games.contract import CHANCE, HIDDEN, OVER
from rejoinder.games.responses import response_actions
from rejoinder.games.session import Session
from rejoinder.kernel import rng

PENNIES = documented_game()  # without chance


@contextmanager
def every_game_registered() -> Iterator[None]:
    with registered(), patch.dict(GAMES, {PENNIES.name: PENNIES}):
        yield


with every_game_registered():  # for names and parameters; during tests by the fixture
    EVERY_GAME = tuple(GAMES.values())
    NAMES = game_names()
CASES = [(game, rules) for game in EVERY_GAME for rules in game.configurations.values()]
ABSTRACTED = [(game, rules, a) for game, rules in CASES for a in game.abstractions]

every_game = pytest.mark.parametrize(("game", "rules"), CASES, ids=NAMES)
every_abstraction = pytest.mark.parametrize(
    ("game", "rules", "abstraction"),
    ABSTRACTED,
    ids=[
        f"{name}-{a.name}"
        for name, (game, _) in zip(NAMES, CASES, strict=True)
        for a in game.abstractions
    ],
)


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    with every_game_registered():
        yield


def test_games_are_found_by_names_with_dashes() -> None:
    assert find_game("wide-numbers") == find_game("wide-numbers-standard")
    assert find_game("deal-micro-plain") == (GAMES["deal"], "micro-plain")
    with pytest.raises(ValueError, match=r"no game is called 'wide'; there are .*wide-numbers"):
        find_game("wide")


@every_game
def test_names_and_numbers_fit_together(game: Game, rules: Rules) -> None:
    assert [a.number for a in game.abstractions] == list(range(len(game.abstractions)))
    assert game.concrete.actions == game.moves
    for names in (game.moves, game.outcomes, *(a.actions for a in game.abstractions)):
        assert len(set(names)) == len(names)
    assert game.fits_masks(game.default_abstraction)
    for a in game.abstractions:
        clamps = a.capability(Clamps) or Clamps()
        assert (clamps.never | clamps.passive | response_actions(game, a)) >> len(a.actions) == 0
    assert 1 <= game.starts <= game.players
    assert game.enumerable <= set(game.configurations)


@every_abstraction
def test_random_playouts_end_and_zero_sums_are_zero(
    game: Game, rules: Rules, abstraction: Abstraction
) -> None:
    for index in range(15):
        session = _start(game, rules, index)
        for choice in _play(session, index, abstraction):
            assert choice, "a player to move has something to do"
            assert session.utilities is None
            assert session.winner is None
        assert session.legal() == []
        assert session.legal_abstract(abstraction.name) == []
        decisions = [event for event in session.history if event.actor is not None]
        assert len(decisions) <= game.max_decisions(rules)
        won = session.utilities
        assert won is not None
        assert len(won) == game.players
        assert sum(won) == 0.0 or not game.zero_sum
        best = [seat for seat in range(game.players) if won[seat] == max(won)]
        assert session.winner == (best[0] if len(best) == 1 else None)


@every_abstraction
def test_masks_have_only_actions_that_there_are(
    game: Game, rules: Rules, abstraction: Abstraction
) -> None:
    """Names and sessions stop at the last action, but solvers would play what lies beyond it."""
    if not game.fits_masks(abstraction):
        pytest.skip("nobody asks for the mask: it cannot hold the actions")
    for index in range(6):
        session = _start(game, rules, index)
        for legal in _play(session, index, abstraction):
            mask = queries.legal_actions(session.states, abstraction.argument())
            assert queries.bits(mask) == legal
            assert max(legal) < len(abstraction.actions)


@every_game
def test_the_chosen_seat_begins(game: Game, rules: Rules) -> None:
    for first in range(game.players):
        assert Session.start(game, rules, seed=3, first_player=first).to_move == first


@every_abstraction
def test_actions_stand_for_legal_moves_and_moves_count_as_legal_actions(
    game: Game, rules: Rules, abstraction: Abstraction
) -> None:
    for index in range(6):
        session = _start(game, rules, index)
        for actions in _play(session, index, game.concrete):
            moves = {move.number: move for move in session.legal()}
            assert actions == list(moves)
            abstract = session.legal_abstract(abstraction.name)
            assert {action.move for action in abstract} <= set(moves)
            if abstraction.meaning is None:
                continue
            for action in abstract:
                assert moves[action.move].meanings[abstraction.name] == action.name
            counted = {move.meanings[abstraction.name] for move in moves.values()}
            assert counted == {action.name for action in abstract}


@every_abstraction
def test_an_infoset_has_one_player_and_one_set_of_actions(
    game: Game, rules: Rules, abstraction: Abstraction
) -> None:
    known: dict[int, tuple[int | None, list[int]]] = {}
    for index in range(30):
        session = _start(game, rules, index)
        for _ in _play(session, index, abstraction):
            key = queries.infoset_key(session.states, abstraction.argument())
            now = (session.to_move, session.legal_abstract(abstraction.name))
            legal = [action.number for action in now[1]]
            assert known.setdefault(key, (now[0], legal)) == (now[0], legal)
    assert len(known) > 1


@every_game
def test_the_concrete_key_tells_what_the_player_sees(game: Game, rules: Rules) -> None:
    seen: dict[int, str] = {}
    keys: dict[str, int] = {}
    for index in range(20):
        session = _start(game, rules, index)
        for _ in _play(session, index, game.concrete):
            assert session.to_move is not None
            key = queries.infoset_key(session.states, game.concrete.argument())
            view = session.view(session.to_move).model_dump_json()
            assert seen.setdefault(key, view) == view
            assert keys.setdefault(view, key) == key


@every_game
def test_seed_and_index_determine_the_luck(game: Game, rules: Rules) -> None:
    def finished(seed: int, index: int) -> str:
        session = Session.start(game, rules, seed=seed, index=index)
        for _ in _play(session, 0, game.concrete):
            pass
        return session.to_json()

    assert [finished(1, k) for k in range(8)] == [finished(1, k) for k in range(8)]
    deals = {tuple(Session.start(game, rules, seed=1, index=k).history) for k in range(20)}
    assert (len(deals) > 1) == bool(game.outcomes)
    deals = {tuple(Session.start(game, rules, seed=k).history) for k in range(20)}
    assert (len(deals) > 1) == bool(game.outcomes)


@every_game
def test_a_copy_is_independent(game: Game, rules: Rules) -> None:
    session = _start(game, rules, 4)
    before = session.to_json()
    twin = session.copy()
    for _ in _play(twin, 5, game.concrete):
        pass
    assert session.to_json() == before
    ended = twin.to_json()
    for _ in _play(session, 6, game.concrete):
        pass
    assert twin.to_json() == ended


@every_game
def test_json_brings_back_the_same_game(game: Game, rules: Rules) -> None:
    for index in range(3):
        session = _start(game, rules, index)
        for k, _ in enumerate(_play(session, index, game.concrete)):
            if k % 3 == 0:
                again = Session.from_json(session.to_json())
                assert again.to_json() == session.to_json()
                assert again.states == session.states
                assert again.history == session.history
                move = session.legal()[-1].number
                twin = session.copy()
                twin.apply(move)
                again.apply(move)  # the luck to come is the same too
                assert again.to_json() == twin.to_json()
        assert Session.from_json(session.to_json()).winner == session.winner


@every_game
def test_probabilities_sum_to_one_and_are_what_is_sampled(game: Game, rules: Rules) -> None:
    draws = 4000
    for k, states in enumerate(_chance_states(game, rules)):
        probabilities = _probabilities(states)
        assert math.isclose(probabilities.sum(), 1.0, abs_tol=1e-12)
        assert (probabilities >= 0.0).all()
        stream = rng.stream(11, k, rng.DEALS)
        sampled = [queries.sample_outcome(states, stream) for _ in range(draws)]
        counts = np.bincount(sampled, minlength=len(probabilities))
        possible = probabilities > 0.0
        assert counts[~possible].sum() == 0
        expected = draws * probabilities[possible]
        chi_square = float(((counts[possible] - expected) ** 2 / expected).sum())
        assert chi_square <= _chi_square_limit(int(possible.sum()) - 1)


@every_game
def test_resolve_chance_samples_all_that_is_due_with_its_probability(
    game: Game, rules: Rules
) -> None:
    for k, states in enumerate(_chance_states(game, rules)):
        at_once, one_by_one = states.copy(), states.copy()
        stream = rng.stream(12, k, rng.DEALS)
        same_stream = stream.copy()
        reach = queries.resolve_chance(at_once, stream)
        product = 1.0
        while queries.current_player(one_by_one) == CHANCE:
            outcome = queries.sample_outcome(one_by_one, same_stream)
            product *= _probabilities(one_by_one)[outcome]
            queries.apply(one_by_one, outcome)
        assert at_once == one_by_one
        assert stream == same_stream
        assert math.isclose(reach, product, rel_tol=1e-12)
        assert queries.resolve_chance(at_once, stream) == 1.0, "nothing more is due"
        assert stream == same_stream


@every_game
def test_what_is_hidden_does_not_show(game: Game, rules: Rules) -> None:
    """Redealing what a player cannot see changes nothing that they can."""
    changed = 0
    for index in range(12):
        session = _start(game, rules, index)
        stream = rng.stream(13, index, rng.REDEALS)
        for _ in _play(session, index, game.concrete):
            for player in range(game.players):
                other = session.copy()
                queries.shuffle_hidden(other.states, player, stream)
                changed += bool(other.states != session.states)
                assert _known_to(other, player) == _known_to(session, player)
                if session.to_move == player:
                    assert other.legal() == session.legal()
                common = {m.number for m in session.legal()} & {m.number for m in other.legal()}
                for move in common:
                    assert queries.observed(session.states, move, player) == queries.observed(
                        other.states, move, player
                    )
    assert changed > 0, "something is hidden in every game here"


@every_game
def test_a_redealt_game_goes_on_like_any_other(game: Game, rules: Rules) -> None:
    for index in range(10):
        session = _start(game, rules, index)
        queries.shuffle_hidden(session.states, index % game.players, rng.stream(14, index, 3))
        for _ in _play(session, index, game.concrete):
            pass
        assert session.utilities is not None
        assert sum(session.utilities) == 0.0 or not game.zero_sum


@pytest.mark.parametrize(
    ("game", "rules"),
    [(game, game.configurations[name]) for game in EVERY_GAME for name in sorted(game.enumerable)],
    ids=[f"{game.name}-{name}" for game in EVERY_GAME for name in sorted(game.enumerable)],
)
def test_redealing_reaches_every_hidden_deal_with_its_probability(game: Game, rules: Rules) -> None:
    """At the first decision: the redealt state is distributed as the deal was, given the view."""
    session = _start(game, rules, 0)
    player = session.to_move
    assert player is not None
    stream = rng.stream(15, 0, rng.REDEALS)
    redealt: dict[bytes, int] = {}
    draws = 3000
    for _ in range(draws):
        states = session.states.copy()
        queries.shuffle_hidden(states, player, stream)
        redealt[states.tobytes()] = redealt.get(states.tobytes(), 0) + 1
    exact = _deals_given_view(session, player)
    assert (len(exact) > 1) == bool(game.outcomes)
    assert set(redealt) <= set(exact)
    chi_square = sum((redealt.get(s, 0) - draws * p) ** 2 / (draws * p) for s, p in exact.items())
    assert chi_square <= _chi_square_limit(len(exact) - 1)


@every_game
def test_histories_that_look_alike_are_told_alike(game: Game, rules: Rules) -> None:
    """Replace an event that a player did not see, replay: they must not notice."""
    replayed, longest = 0, min(12, game.max_decisions(rules))
    for index in range(12):
        session = _start(game, rules, index)
        stop = random.Random(index).randrange(1, max(2, longest))
        for k, _ in enumerate(_play(session, index, game.concrete)):
            if k == stop:
                break
        if session.over:
            continue
        for player in range(game.players):
            for twin in _alternatives(session, player):
                replayed += 1
                assert twin.history != session.history
                assert twin.seen_by(player) == session.seen_by(player)
                assert _known_to(twin, player) == _known_to(session, player)
    assert replayed > 0


def _start(game: Game, rules: Rules, index: int) -> Session:
    return Session.start(game, rules, seed=1, index=index, first_player=index % game.players)


def _play(session: Session, seed: int, abstraction: Abstraction) -> Iterator[list[int]]:
    """Play at random to the end; yields the legal actions before each is chosen."""
    choose = random.Random(seed)
    while not session.over:
        legal = [action.number for action in session.legal_abstract(abstraction.name)]
        yield legal
        session.apply_abstract(choose.choice(legal), abstraction.name)


def _known_to(session: Session, player: int) -> dict[str, object]:
    known: dict[str, object] = {
        "to_move": session.to_move,
        "view": session.view(player).model_dump_json(),
    }
    if session.to_move == player:
        for a in session.game.abstractions:
            known[f"key {a.name}"] = queries.infoset_key(session.states, a.argument())
            known[f"legal {a.name}"] = session.legal_abstract(a.name)
    return known


def _probabilities(states: States) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    probabilities = np.full(128, np.nan)
    return probabilities[: queries.chance_outcomes(states, probabilities)]


def _chance_states(game: Game, rules: Rules) -> list[States]:
    """States that wait for chance: the first deals, and some later in random games."""
    found = []
    for index in range(4):
        choose = random.Random(index)
        stream = rng.stream(10, index, rng.DEALS)
        states = np.zeros(1, game.dtype)
        queries.start(states, game.template(rules), index % game.players)
        for _ in range(40):
            seat = queries.current_player(states)
            if seat == CHANCE:
                found.append(states.copy())
                queries.apply(states, queries.sample_outcome(states, stream))
            elif seat >= 0:
                legal = queries.legal_numbers(game, states)
                queries.apply(states, choose.choice(legal))
    return found[::5]


def _chi_square_limit(freedom: int) -> float:
    """Exceeded with probability 1e-5 (Wilson and Hilferty's approximation)."""
    if freedom == 0:
        return 1e-9
    spread = 2.0 / (9.0 * freedom)
    return float(freedom * (1.0 - spread + 4.2649 * math.sqrt(spread)) ** 3)


def _deals_given_view(session: Session, player: int) -> dict[bytes, float]:
    """Every state with this view after the first deal, with its conditional probability."""
    game = session.game
    root = np.zeros(1, game.dtype)
    assert session.to_move is not None
    queries.start(root, game.template(session.rules), session.to_move)
    reach = {root.tobytes(): 1.0}
    while True:
        waiting = [s for s in reach if queries.current_player(_state(game, s)) == CHANCE]
        if not waiting:
            break
        for source in waiting:
            mass = reach.pop(source)
            for outcome, p in enumerate(_probabilities(_state(game, source))):
                if p > 0.0:
                    states = _state(game, source)
                    queries.apply(states, outcome)
                    reach[states.tobytes()] = reach.get(states.tobytes(), 0.0) + mass * p
    view = session.view(player)
    alike = {s: p for s, p in reach.items() if game.view(_state(game, s), player) == view}
    total = sum(alike.values())
    return {s: p / total for s, p in alike.items()}


def _state(game: Game, content: bytes) -> States:
    return np.frombuffer(content, game.dtype).copy()


def _alternatives(session: Session, player: int) -> Iterator[Session]:
    """Replays in which one outcome or move that `player` did not see was another one."""
    told = list(zip(session.history, session.seen_by(player), strict=True))
    hidden = [k for k, (_, seen) in enumerate(told) if seen.number == HIDDEN]
    first = next(event.actor for event, _ in told if event.actor is not None)
    for k in hidden[:4]:
        changed = told[k][0]
        names = session.game.outcomes if changed.actor is None else session.game.moves
        for other in range(len(names)):
            if other == changed.number:
                continue
            events = [
                (event.actor, other if j == k else event.number)
                for j, (event, _) in enumerate(told)
            ]
            try:
                twin = Session.start(
                    session.game,
                    session.rules,
                    seed=0,
                    first_player=first,
                    deck=[number for actor, number in events if actor is None],
                )
                for actor, number in events:
                    if actor is not None:
                        twin.apply(number)
            except ValueError:  # it could not have happened so
                continue
            yield twin


@every_game
def test_every_position_passes_the_games_own_check(game: Game, rules: Rules) -> None:
    """Positions that wait for chance among them."""
    for index in range(10):
        chance, choices = rng.stream(index, 0, rng.DEALS), random.Random(index)
        states = np.zeros(1, game.dtype)
        queries.start(states, game.template(rules), index % game.players)
        while (mover := queries.current_player(states)) != OVER:
            assert game.check(states, rules) is None
            if mover == CHANCE:
                queries.apply(states, int(queries.sample_outcome(states, chance)))
            else:
                legal = queries.legal_numbers(game, states)
                queries.apply(states, choices.choice(legal))
        assert game.check(states, rules) is None
