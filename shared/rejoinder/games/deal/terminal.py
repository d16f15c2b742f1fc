"""Monopoly Deal in a terminal: rules in words, sets by their progress, moves by their worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rejoinder.games.base import Game
from rejoinder.games.deal import cards
from rejoinder.games.deal.cards import COLOURS, RENT, SET_SIZE, WORTH
from rejoinder.games.deal.rules import DealRules
from rejoinder.games.deal.view import DealView, PlayerPiles, ResponseContext
from rejoinder.games.session import Event
from rejoinder.kernel.jit import plain


def terminal_view(game: Game, rules: DealRules, person: int) -> DealTerminal:
    """The game as the person at a seat sees it (see `rejoinder_cli.view`)."""
    return DealTerminal(game, rules, person)


class DealTerminal:
    """The game as one of its players sees it."""

    def __init__(self, game: Game, rules: DealRules, person: int) -> None:
        self.person = person
        self._title = game.title
        self._rules = rules

    def rules(self) -> str:
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
        return "\n".join([f"{self._title}. All the rules: docs/rules.md", *lines])

    def screen(self, view: DealView) -> RenderableType:
        whose = "Your turn" if view.streak_player == self.person else "The agent's turn"
        play = f"play {view.streak_index + 1} of {self._rules.streak}"
        facts = f"{_sets(view.sets_needed)} · deck {view.deck_size}"
        status = Text(f"{whose}, {play} · {facts}", style="" if view.response else "bold")
        if view.response is None:
            return Group(Text(), status, _table(view))
        owes = Text(_owes(view.response), style="bold reverse")
        return Group(Text(), owes, status, _table(view))

    def move(self, view: DealView, number: int) -> str:
        return _move(number, view.own, view.response)

    def events(self, before: DealView | None, events: Sequence[Event]) -> list[str]:
        if before is None:  # the deal: the hand is on the first screen
            return []
        lines = []
        for (actor, seen), group in groupby(events, lambda e: (e.actor, e.number >= 0)):
            same = list(group)
            if actor is None:
                drawn = _cards(same) if seen else _count(len(same), "card")
                lines.append(f"{'you draw' if seen else 'agent draws'}: {drawn}")
                continue
            who, owner = ("agent", before.opponent)
            if actor == self.person:
                who, owner = "you", before.own
            lines += [
                f"{who}: {_move(event.number, owner, before.response)}"
                f"{_paid(event.number, before.response)}"
                for event in same
            ]
        return lines

    def end(self, own: DealView, agents: DealView) -> RenderableType:
        return _table(own, agents.hand)


def _owes(response: ResponseContext) -> str:
    left = response.owed - response.paid
    return (
        f"The agent charges {response.action}: you owe {response.owed}, "
        f"paid {response.paid}, {left} to go."
        + (" A property given now counts double." if response.property_doubled else "")
    )


def _table(view: DealView, agents_hand: dict[str, int] | None = None) -> Table:
    agents = _count(view.opponent.hand_size, "card")
    if agents_hand is not None:
        agents = _pile(agents_hand)
    grid = Table.grid(padding=(0, 2))
    for whose, piles, hand in (
        ("Agent", view.opponent, agents),
        ("You", view.own, _pile(view.hand)),
    ):
        bank = f"bank {piles.bank_value}"
        if piles.bank:
            bank += f": {_pile(piles.bank)}"
        grid.add_row(Text(whose, style="bold"), Text(f"{_progress(piles)} · {bank}"))
        grid.add_row(Text("  hand", style="dim"), Text(hand))
    return grid


def _progress(piles: PlayerPiles) -> str:
    """How far the sets are: `brown 2/2 complete, pink 1/3`."""
    told = [
        f"{colour} {piles.properties[colour]}/{size}"
        + (" complete" if colour in piles.complete_sets else "")
        for colour, size in zip(COLOURS, SET_SIZE, strict=True)
        if colour in piles.properties
    ]
    return ", ".join(told) or "no properties"


def _move(number: int, owner: PlayerPiles, response: ResponseContext | None) -> str:
    """A move with what it is worth to its owner, or charges the other."""
    name = cards.MOVE_NAMES[number]
    if cards.RENT_CARD <= number < cards.JUST_SAY_NO:
        colour = number - cards.RENT_CARD
        rent = plain(cards.rent_for)(colour, owner.properties.get(cards.COLOURS[colour], 0))
        return f"{name}: charges {rent or 'nothing'}"
    if _gives(number):
        worth, counts = _worth(number), _counts(number, response)
        return f"{name}, worth {worth}" + (f", counts {counts}" if counts != worth else "")
    if number == cards.JUST_SAY_NO:
        return f"{name}: ends the payment"
    if number == cards.YIELD:
        return f"{name}: nothing left to give"
    return name


def _gives(number: int) -> bool:
    return bool(cards.GIVE_BANK <= number < cards.PASS)


def _worth(number: int) -> int:
    """What a giving move hands over; 0 for other moves."""
    return int(WORTH[plain(cards.given_kind)(number)]) if _gives(number) else 0


def _counts(number: int, before: ResponseContext | None) -> int:
    """What a giving move counts towards the debt; 0 for other moves."""
    doubled = before is not None and before.property_doubled and number >= cards.GIVE_PROPERTY
    return _worth(number) * (2 if doubled else 1)


def _paid(number: int, before: ResponseContext | None) -> str:
    """What is paid after a response."""
    return f" ({before.paid + _counts(number, before)} of {before.owed} paid)" if before else ""


def _pile(cards: Mapping[str, int]) -> str:
    """Cards, counted."""
    return ", ".join(name if n == 1 else f"{n} × {name}" for name, n in cards.items()) or "–"


def _cards(drawn: Sequence[Event]) -> str:
    return ", ".join(event.name for event in drawn)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _sets(needed: int) -> str:
    return "1 complete set wins" if needed == 1 else f"{needed} complete sets win"
