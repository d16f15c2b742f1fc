"""A game as it is told in the terminal to the person who plays it.

Any game can be told by the fields of its views; Monopoly Deal has a table of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rejoinder.games.base import Game
    from rejoinder.games.deal.rules import DealRules
    from rejoinder.games.deal.view import DealView, PlayerPiles, ResponseContext
    from rejoinder.games.session import Event, Session

# Told otherwise: by the prompt, by the panels' places, by the end of the game.
_UNSAID = frozenset({"player", "to_move", "over", "winner"})


def teller(session: Session, person: int) -> Teller:
    """Who tells the session's game to the person at a seat."""
    from rejoinder.games.deal.rules import DealRules

    if isinstance(session.rules, DealRules):
        return _DealTeller(session.game, person, session.rules)
    return Teller(session.game, person)


class Teller:
    """Tells any game."""

    def __init__(self, game: Game, person: int) -> None:
        self.game = game
        self.person = person

    def rules(self) -> str:
        return f"{self.game.title}."

    def screen(self, view: Any) -> RenderableType:
        """What the person sees when he is asked for a move."""
        return panels(view)

    def move(self, view: Any, number: int) -> str:  # noqa: ARG002 (other games need it)
        """A move that he may choose."""
        return self.game.moves[number]

    def events(self, before: Any, events: Sequence[Event]) -> list[str]:  # noqa: ARG002
        """What happened since he saw `before` (None: the beginning), as he saw it."""
        return [f"{self.who(event)}: {event.name}" for event in events if event.number >= 0]

    def end(self, own: Any, agents: Any) -> RenderableType:  # noqa: ARG002
        """The table after the end, by his view and the agent's."""
        return Group(Text("What the agent saw:"), panels(agents))

    def who(self, event: Event) -> str:
        return {None: "drawn", self.person: "you"}.get(event.actor, "agent")


class _DealTeller(Teller):
    """Tells Monopoly Deal: sets by their progress, moves by what they are worth."""

    def __init__(self, game: Game, person: int, rules: DealRules) -> None:
        super().__init__(game, person)
        self._rules = rules

    def rules(self) -> str:
        from rejoinder.games.deal.cards import COLOURS, RENT, SET_SIZE

        given = self._rules
        sizes = ", ".join(f"{c} {size}" for c, size in zip(COLOURS, SET_SIZE, strict=True))
        rents = "; ".join(
            f"{c} {', '.join(str(rent) for rent in row[1 : size + 1])}"
            for c, row, size in zip(COLOURS, RENT, SET_SIZE, strict=True)
        )
        told = {
            "Goal": f"{_sets(given.sets_needed)}. Properties in a set: {sizes}.",
            "Turn": f"draw {given.draw} (with an empty hand {given.hand_size}), then play up to "
            f"{given.streak}: a property,\ncash into your bank, a rent card. Pass ends it.",
        }
        if any(given.rent_copies):
            told["Rent"] = f"is charged by how many of its colour you own:\n{rents}."
            told["Response"] = (
                "who owes gives cards from bank or properties, one at a time.\n"
                "No change is given. They go to the other's bank, as money."
            )
            if given.response == "ordered":
                told["Order"] = (
                    "a property given as the first card counts double;\n"
                    "every later card counts its worth."
                )
        if given.just_say_no:
            told["Just say no"] = "ends the response at once; what was given stays given."
        told["Draw"] = (
            f"the game is drawn with deck and hands empty, or after {given.turn_cap} plays."
        )
        width = max(map(len, told)) + 2
        lines = [
            f"{name:{width}}" + text.replace("\n", "\n" + " " * width)
            for name, text in told.items()
        ]
        return "\n".join([f"{self.game.title}. All the rules: docs/rules.md", *lines])

    def screen(self, view: DealView) -> RenderableType:
        whose = "Your turn" if view.streak_player == self.person else "The agent's turn"
        play = f"play {view.streak_index + 1} of {self._rules.streak}"
        facts = f"{_sets(view.sets_needed)} · deck {view.deck_size}"
        status = Text(f"{whose}, {play} · {facts}", style="" if view.response else "bold")
        if view.response is None:
            return Group(Text(), status, _deal_table(view))
        owes = Text(_owes(view.response), style="bold reverse")
        return Group(Text(), owes, status, _deal_table(view))

    def move(self, view: DealView, number: int) -> str:
        return _deal_move(number, view.own, view.response)

    def events(self, before: DealView | None, events: Sequence[Event]) -> list[str]:
        if before is None:  # the deal: the hand is on the first screen
            return []
        lines = []
        for (actor, seen), group in groupby(events, lambda e: (e.actor, e.number >= 0)):
            same = list(group)
            if actor is None:
                cards = _cards(same) if seen else _count(len(same), "card")
                lines.append(f"{'you draw' if seen else 'agent draws'}: {cards}")
                continue
            owner = before.own if actor == self.person else before.opponent
            lines += [
                f"{self.who(event)}: {_deal_move(event.number, owner, before.response)}"
                f"{_paid(event.number, before.response)}"
                for event in same
            ]
        return lines

    def end(self, own: DealView, agents: DealView) -> RenderableType:
        return _deal_table(own, agents.hand)


def _owes(response: ResponseContext) -> str:
    left = response.owed - response.paid
    return (
        f"The agent charges {response.action}: you owe {response.owed}, "
        f"paid {response.paid}, {left} to go."
        + (" A property given now counts double." if response.property_doubled else "")
    )


def _deal_table(view: DealView, agents_hand: dict[str, int] | None = None) -> Table:
    agents = _count(view.opponent.hand_size, "card")
    if agents_hand is not None:
        agents = _words(agents_hand)
    grid = Table.grid(padding=(0, 2))
    for whose, piles, hand in (
        ("Agent", view.opponent, agents),
        ("You", view.own, _words(view.hand)),
    ):
        bank = f"bank {piles.bank_value}"
        if piles.bank:
            bank += f": {_words(piles.bank)}"
        grid.add_row(Text(whose, style="bold"), Text(f"{_progress(piles)} · {bank}"))
        grid.add_row(Text("  hand", style="dim"), Text(hand))
    return grid


def _progress(piles: PlayerPiles) -> str:
    """How far the sets are: `brown 2/2 complete, pink 1/3`."""
    from rejoinder.games.deal.cards import COLOURS, SET_SIZE

    told = [
        f"{colour} {piles.properties[colour]}/{size}"
        + (" complete" if colour in piles.complete_sets else "")
        for colour, size in zip(COLOURS, SET_SIZE, strict=True)
        if colour in piles.properties
    ]
    return ", ".join(told) or "no properties"


def _deal_move(number: int, owner: PlayerPiles, response: ResponseContext | None) -> str:
    """A move with what it is worth to its owner, or charges the other."""
    from rejoinder.games.deal import cards
    from rejoinder.kernel.jit import plain

    name = cards.MOVE_NAMES[number]
    if cards.RENT_CARD <= number < cards.JUST_SAY_NO:
        colour = number - cards.RENT_CARD
        rent = plain(cards.rent_for)(colour, owner.properties.get(cards.COLOURS[colour], 0))
        return f"{name}: charges {rent or 'nothing'}"
    if cards.GIVE_BANK <= number < cards.PASS:
        worth, counts = _worth(number), _counts(number, response)
        return f"{name}, worth {worth}" + (f", counts {counts}" if counts != worth else "")
    if number == cards.JUST_SAY_NO:
        return f"{name}: ends the payment"
    if number == cards.YIELD:
        return f"{name}: nothing left to give"
    return name


def _worth(number: int) -> int:
    """What a giving move hands over; 0 for other moves."""
    from rejoinder.games.deal.cards import GIVE_BANK, PASS, WORTH, given_kind
    from rejoinder.kernel.jit import plain

    return int(WORTH[plain(given_kind)(number)]) if GIVE_BANK <= number < PASS else 0


def _counts(number: int, before: ResponseContext | None) -> int:
    """What a giving move counts towards the debt; 0 for other moves."""
    from rejoinder.games.deal.cards import GIVE_PROPERTY

    doubled = before is not None and before.property_doubled and number >= GIVE_PROPERTY
    return _worth(number) * (2 if doubled else 1)


def _paid(number: int, before: ResponseContext | None) -> str:
    """What is paid after a response."""
    return f" ({before.paid + _counts(number, before)} of {before.owed} paid)" if before else ""


def _cards(drawn: Sequence[Event]) -> str:
    return ", ".join(event.name for event in drawn)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _sets(needed: int) -> str:
    return "1 complete set wins" if needed == 1 else f"{needed} complete sets win"


def panels(view: BaseModel) -> Group:
    """One panel for the view's own fields, and below it one for each part of the view."""
    parts = {name: part for name, part in view if isinstance(part, BaseModel)}
    own = {name: value for name, value in view if name not in parts and name not in _UNSAID}
    return Group(
        _panel("table", own), Columns([_panel(name, dict(part)) for name, part in parts.items()])
    )


def _panel(title: str, fields: dict[str, Any]) -> Panel:
    grid = Table.grid(padding=(0, 2))
    for name, value in fields.items():
        if value is not None:
            grid.add_row(Text(name.replace("_", " "), style="dim"), Text(_words(value)))
    return Panel.fit(grid, title=title.replace("_", " "))


def _words(value: Any) -> str:
    """A value in words: piles of cards are counted, lists are told in order."""
    if isinstance(value, BaseModel):
        return ", ".join(f"{name} {_words(part)}" for name, part in value if part)
    if isinstance(value, dict):
        return ", ".join(n if k == 1 else f"{k} × {n}" for n, k in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(_words(part) for part in value) or "–"
    return str(value)
