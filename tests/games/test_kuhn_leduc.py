"""Kuhn and Leduc poker, by hand: legal moves, payoffs, what is hidden."""

from __future__ import annotations

import random
from typing import cast

import pytest

from rejoinder.games import GAMES, queries
from rejoinder.games.base import Game
from rejoinder.games.poker import PokerView
from rejoinder.games.session import Session

KUHN, LEDUC = GAMES["kuhn"], GAMES["leduc"]


def play(game: str, deal: str, moves: str, first: int = 0) -> Session:
    """`deal` and `moves` as words; the public card is dealt after the first round."""
    session = Session.start(game, seed=1, first_player=first, deck=deal.split())
    for move in moves.split():
        session.apply(move)
    return session


def names(session: Session) -> list[str]:
    return [move.name for move in session.legal()]


class TestKuhn:
    @pytest.mark.parametrize(
        ("deal", "moves", "won"),
        [
            ("K Q", "pass pass", 1.0),
            ("J Q", "pass pass", -1.0),
            ("J Q", "bet pass", 1.0),
            ("K J", "bet pass", 1.0),
            ("K Q", "bet bet", 2.0),
            ("J K", "bet bet", -2.0),
            ("K J", "pass bet pass", -1.0),
            ("J Q", "pass bet pass", -1.0),
            ("Q J", "pass bet bet", 2.0),
            ("Q K", "pass bet bet", -2.0),
        ],
    )
    @pytest.mark.parametrize("first", [0, 1])
    def test_payoffs(self, deal: str, moves: str, won: float, first: int) -> None:
        session = play("kuhn", deal, moves, first)
        assert session.over
        assert session.utilities == ((won, -won) if first == 0 else (-won, won))
        assert session.winner == (first if won > 0 else 1 - first)

    def test_pass_and_bet_are_always_legal_and_turns_alternate(self) -> None:
        session = play("kuhn", "K Q", "", first=1)
        assert (session.to_move, names(session)) == (1, ["pass", "bet"])
        session.apply("pass")
        assert (session.to_move, names(session)) == (0, ["pass", "bet"])
        session.apply("bet")
        assert (session.to_move, names(session)) == (1, ["pass", "bet"])

    def test_a_card_is_dealt_once(self) -> None:
        with pytest.raises(ValueError, match="'K' cannot come next; possible are 'J', 'Q'"):
            play("kuhn", "K K", "")

    def test_the_card_is_hidden_until_the_end(self) -> None:
        session = play("kuhn", "K J", "bet")
        view = cast(PokerView, session.view(1))
        assert (view.card, view.opponent_card, view.public_card) == ("J", None, None)
        assert (view.moves, view.to_move, view.chips_won) == (["bet"], 1, None)
        assert [e.name for e in session.seen_by(1)] == ["hidden", "J", "bet"]
        session.apply("bet")
        view = cast(PokerView, session.view(1))
        assert (view.opponent_card, view.chips_won, view.over) == ("K", -2.0, True)


class TestLeduc:
    @pytest.mark.parametrize(
        ("deal", "moves", "won"),
        [
            # a fold costs what was paid
            ("K♠ J♠", "raise fold", 1.0),
            ("K♠ J♠", "call raise fold", -1.0),
            ("K♠ J♠", "raise raise fold", -3.0),
            ("K♠ J♠ Q♠", "call call raise fold", 1.0),
            ("K♠ J♠ Q♠", "raise call raise raise fold", -7.0),
            # showdowns: the higher rank, a pair before any rank, equal ranks split
            ("K♠ J♠ Q♠", "call call call call", 1.0),
            ("K♠ J♠ J♥", "call call call call", -1.0),
            ("Q♠ J♠ Q♥", "call call call call", 1.0),
            ("Q♠ Q♥ K♠", "raise call raise call", 0.0),
            # raises are 2, then 4, at most two in each round
            ("K♠ J♠ Q♠", "raise call call call", 3.0),
            ("K♠ J♠ Q♠", "call call raise call", 5.0),
            ("K♠ J♠ J♥", "raise raise call raise raise call", -13.0),
            ("K♠ J♠ K♥", "call raise raise call call raise raise call", 13.0),
        ],
    )
    @pytest.mark.parametrize("first", [0, 1])
    def test_payoffs(self, deal: str, moves: str, won: float, first: int) -> None:
        session = play("leduc", deal, moves, first)
        assert session.over
        assert session.utilities == ((won, -won) if first == 0 else (-won, won))
        winners = {1.0: first, -1.0: 1 - first}
        assert session.winner == (winners[won / abs(won)] if won else None)

    def test_legal_moves(self) -> None:
        session = play("leduc", "K♠ J♠ Q♠", "")
        steps = [
            ("call", 0, ["call", "raise"]),
            ("raise", 1, ["call", "raise"]),
            ("raise", 0, ["fold", "call", "raise"]),
            ("call", 1, ["fold", "call"]),  # two raises: no third
            ("raise", 0, ["call", "raise"]),  # the same seat begins the second round
            ("call", 1, ["fold", "call", "raise"]),
        ]
        for move, seat, legal in steps:
            assert (session.to_move, names(session)) == (seat, legal)
            session.apply(move)
        assert session.over

    def test_the_public_card_is_public_and_comes_after_the_first_round(self) -> None:
        session = play("leduc", "K♠ J♠ Q♠", "call")
        assert cast(PokerView, session.view(0)).public_card is None
        session.apply("call")
        for seat, card in enumerate(["K♠", "J♠"]):
            view = cast(PokerView, session.view(seat))
            assert (view.public_card, view.card, view.opponent_card) == ("Q♠", card, None)
            assert view.moves == ["call", "call"]
            assert session.seen_by(seat)[-1].name == "Q♠"

    def test_a_card_is_dealt_once(self) -> None:
        with pytest.raises(ValueError, match="'J♠' cannot come next"):
            play("leduc", "K♠ J♠ J♠", "call call")

    def test_a_fold_in_the_first_round_deals_no_public_card(self) -> None:
        session = play("leduc", "K♠ J♠ Q♠", "raise fold")
        assert [e.actor for e in session.history] == [None, None, 0, 1]


@pytest.mark.parametrize("game", [KUHN, LEDUC], ids=lambda game: game.name)
@pytest.mark.parametrize("first", [0, 1])
def test_an_infoset_is_described_as_its_player_sees_it(game: Game, first: int) -> None:
    for seed in range(40):
        session = Session.start(game, seed=seed, first_player=first)
        chance = random.Random(seed)
        while not session.over:
            seat = session.to_move
            assert seat is not None
            view = cast(PokerView, session.view(seat))
            told = game.abstractions[0].description(int(queries.infoset_key(session.states, 0)))
            assert told["card"] == view.card
            assert told["moves"] == view.moves
            assert told.get("public_card") == view.public_card
            assert told["player"] == seat
            session.apply(chance.choice(names(session)))
