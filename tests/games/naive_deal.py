"""A naive second implementation of the flagship card game, for differential tests.

The compiled engine is played against this one, move by move, on many random games; the two must
agree on every legal action, every abstract name and every state. So this file is written from the
rules alone, shares nothing with the engine, and prefers the obvious to the fast: cards are text,
piles are lists, everything is recounted whenever it is needed.

A game ends inside the turn that decides it: that turn counts as completed, and the streak's player
and index stay what they were during it.
"""

import hashlib
import json

COLOURS = ["brown", "green", "pink"]
JUST_SAY_NO = "just say no"

ABSTRACT_ACTIONS = [
    "START_NEW_PROPERTY_SET",
    "ADD_TO_PROPERTY_SET",
    "COMPLETE_PROPERTY_SET",
    "CASH",
    "ATTEMPT_COLLECT_RENT",
    "JUST_SAY_NO",
    "GIVE_OPPONENT_CASH",
    "GIVE_OPPONENT_PROPERTY",
    "PASS",
    "YIELD",
    "OTHER",
]


class NaiveDeal:
    """One game in progress; seats are 0 and 1."""

    def __init__(
        self,
        *,
        deck: list[str],
        first_player: int,
        sets_needed: int,
        hand_size: int,
        draw: int,
        streak: int,
        turn_cap: int,
        response: str,
    ) -> None:
        """Deal seat 0, then seat 1, from deck[0] on; then the first player draws."""
        self.sets_needed = sets_needed
        self.hand_size = hand_size
        self.draw = draw
        self.streak = streak
        self.turn_cap = turn_cap
        self.response = response

        self.deck: list[str] = list(deck)  # deck[0] is the next card drawn
        self.discard: list[str] = []
        self.hands: list[list[str]] = [[], []]
        self.banks: list[list[str]] = [[], []]
        self.properties: list[list[str]] = [[], []]

        self.turn = 0  # completed turns
        self.streak_player = first_player
        self.streak_index = 0
        self.over = False
        self.winner: int | None = None

        # The response phase; the initiator is always the player whose streak it is.
        self.in_response = False
        self.rent_action = ""
        self.owed = 0
        self.paid = 0
        self.responses: list[str] = []

        # Who yields shows that he has no Just Say No: his cards then, and those played since.
        self.shown: list[int] = [0, 0]
        self.played_since: list[int] = [0, 0]

        self._draw_cards(0, hand_size)
        self._draw_cards(1, hand_size)
        self._start_streak(first_player)

    def current_player(self) -> int:
        """The seat that must act now: the responder in a response phase."""
        if self.in_response:
            return 1 - self.streak_player
        return self.streak_player

    def is_over(self) -> bool:
        """Whether the game has been won or drawn."""
        return self.over

    def utilities(self) -> list[float]:
        """+1 for the winner and -1 for the loser; zeros for a draw or a game in progress."""
        if self.winner == 0:
            return [1.0, -1.0]
        if self.winner == 1:
            return [-1.0, 1.0]
        return [0.0, 0.0]

    def legal(self) -> set[str]:
        """Every concrete action the current player may take; empty once the game is over."""
        if self.over:
            return set()
        if self.in_response:
            return self._legal_responses()
        return self._legal_main_actions()

    def apply(self, action: str) -> None:
        """Play one legal action of the current player."""
        if action not in self.legal():
            raise ValueError(f"illegal action {action!r}; legal now: {sorted(self.legal())}")
        if self.in_response:
            self._apply_response(action)
        else:
            self._apply_main_action(action)

    def abstract(self, action: str) -> str:
        """The abstract name of a legal concrete action in the current state."""
        if action not in self.legal():
            raise ValueError(f"illegal action {action!r}; legal now: {sorted(self.legal())}")
        if action == "pass":
            return "PASS"
        if action == "yield":
            return "YIELD"
        if action == JUST_SAY_NO:
            return "JUST_SAY_NO"
        if action.startswith("give bank "):
            return "GIVE_OPPONENT_CASH"
        if action.startswith("give property "):
            return "GIVE_OPPONENT_PROPERTY"
        if action.startswith("cash "):
            return "CASH"

        owned = self._count_owned(self.current_player(), colour_of(action))
        if action.startswith("rent "):
            if owned == 0:
                return "OTHER"
            return "ATTEMPT_COLLECT_RENT"

        size = set_size(colour_of(action))
        if owned >= size:
            return "CASH"
        if owned + 1 == size:
            return "COMPLETE_PROPERTY_SET"
        if owned == 0:
            return "START_NEW_PROPERTY_SET"
        return "ADD_TO_PROPERTY_SET"

    def available_abstract(self) -> list[str]:
        """The abstract names of all legal actions, each once, in the order of the rules."""
        names = []
        for action in self.legal():
            names.append(self.abstract(action))
        available = []
        for name in ABSTRACT_ACTIONS:
            if name in names:
                available.append(name)
        return available

    def infoset_id(self) -> str:
        """The intent-abstraction identifier of the acting player; indices count from 0."""
        indices = []
        for name in self.available_abstract():
            indices.append(ABSTRACT_ACTIONS.index(name))
        content: dict[str, object] = {
            "opponent": {},
            "player": {"actions": sorted(indices)},
            "streak_idx": self.streak_index,
        }
        if self._property_counts_double() and "GIVE_OPPONENT_PROPERTY" in self.available_abstract():
            content["property_doubled"] = True
            bank = self.banks[self.current_player()]
            content["bank_covers"] = sum(card_worth(card) for card in bank) >= self.owed
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        digest = hashlib.md5(text.encode("utf-8")).hexdigest()
        return f"{self.current_player()}@IntentStateAbstraction@{digest}"

    def snapshot(self) -> dict[str, object]:
        """The whole state except the order of the deck, piles sorted, for comparison."""
        response: dict[str, object] | None = None
        if self.in_response:
            response = {
                "owed": self.owed,
                "paid": self.paid,
                "initiator": self.streak_player,
                "action": self.rent_action,
                "responses": list(self.responses),
            }
        return {
            "hands": [sorted(self.hands[0]), sorted(self.hands[1])],
            "banks": [sorted(self.banks[0]), sorted(self.banks[1])],
            "properties": [sorted(self.properties[0]), sorted(self.properties[1])],
            "deck_size": len(self.deck),
            "discard": sorted(self.discard),
            "cannot_refuse": [self._surely_no_refusals(0), self._surely_no_refusals(1)],
            "turn": self.turn,
            "streak_player": self.streak_player,
            "streak_index": self.streak_index,
            "response": response,
        }

    def _legal_main_actions(self) -> set[str]:
        actions = {"pass"}
        for card in self.hands[self.streak_player]:
            if card != JUST_SAY_NO:
                actions.add(card)
        return actions

    def _legal_responses(self) -> set[str]:
        responder = self.current_player()
        actions = set()
        for card in self.banks[responder]:
            actions.add("give bank " + card)
        for card in self.properties[responder]:
            actions.add("give " + card)
        if JUST_SAY_NO in self.hands[responder]:
            actions.add(JUST_SAY_NO)
        if len(actions) == 0:
            actions.add("yield")
        return actions

    def _apply_main_action(self, action: str) -> None:
        player = self.streak_player
        if action == "pass":
            self._end_turn(passed=True)
            return

        self.hands[player].remove(action)
        self.played_since[player] = self.played_since[player] + 1
        if action.startswith("property "):
            self.properties[player].append(action)
            if self._count_complete_sets(player) >= self.sets_needed:
                self.winner = player
            self._end_turn(passed=False)
        elif action.startswith("cash "):
            self.banks[player].append(action)
            self._end_turn(passed=False)
        else:
            self.discard.append(action)
            amount = self._rent_due(player, colour_of(action))
            if amount == 0:
                self._end_turn(passed=False)
            else:
                self.in_response = True
                self.rent_action = action
                self.owed = amount
                self.paid = 0
                self.responses = []

    def _apply_response(self, action: str) -> None:
        initiator = self.streak_player
        responder = self.current_player()
        doubled = self._property_counts_double()
        self.responses.append(action)

        finished = False
        if action == "yield":
            self.shown[responder] = len(self.hands[responder])
            self.played_since[responder] = 0
            finished = True
        elif action == JUST_SAY_NO:
            self.hands[responder].remove(JUST_SAY_NO)
            self.discard.append(JUST_SAY_NO)
            finished = True
        elif action.startswith("give bank "):
            card = action.removeprefix("give bank ")
            self.banks[responder].remove(card)
            self.banks[initiator].append(card)
            self.paid = self.paid + card_worth(card)
        else:
            card = action.removeprefix("give ")
            self.properties[responder].remove(card)
            self.banks[initiator].append(card)
            self.paid = self.paid + card_worth(card)
            if doubled:
                self.paid = self.paid + card_worth(card)

        if self.paid >= self.owed:
            finished = True
        if finished:
            self.in_response = False
            self._end_turn(passed=False)

    def _surely_no_refusals(self, player: int) -> int:
        """Cards of a hand that were there at the last yield, if those were played first."""
        return max(0, self.shown[player] - self.played_since[player])

    def _property_counts_double(self) -> bool:
        """Under ordered responses, until the first card of the phase is given."""
        return self.response == "ordered" and self.in_response and len(self.responses) == 0

    def _end_turn(self, *, passed: bool) -> None:
        self.turn = self.turn + 1
        if self.winner is not None:
            self.over = True
            return
        if len(self.deck) == 0 and len(self.hands[0]) == 0 and len(self.hands[1]) == 0:
            self.over = True
            return
        if self.turn >= self.turn_cap:
            self.over = True
            return
        if passed or self.streak_index + 1 >= self.streak:
            self._start_streak(1 - self.streak_player)
        else:
            self.streak_index = self.streak_index + 1

    def _start_streak(self, player: int) -> None:
        self.streak_player = player
        self.streak_index = 0
        if len(self.hands[player]) == 0:
            self._draw_cards(player, self.hand_size)
        else:
            self._draw_cards(player, self.draw)

    def _draw_cards(self, player: int, count: int) -> None:
        for _ in range(count):
            if len(self.deck) > 0:
                self.hands[player].append(self.deck.pop(0))

    def _count_owned(self, player: int, colour: str) -> int:
        return self.properties[player].count("property " + colour)

    def _count_complete_sets(self, player: int) -> int:
        complete = 0
        for colour in COLOURS:
            if self._count_owned(player, colour) >= set_size(colour):
                complete = complete + 1
        return complete

    def _rent_due(self, player: int, colour: str) -> int:
        owned = self._count_owned(player, colour)
        if owned == 0:
            return 0
        owned = min(owned, set_size(colour))
        return rent_progression(colour)[owned - 1]


def full_deck(
    property_copies: tuple[int, int, int],
    cash_copies: tuple[int, int, int, int],
    rent_copies: tuple[int, int, int],
    just_say_no: int,
) -> list[str]:
    """All cards, unshuffled; per-colour tuples are (brown, green, pink), cash is values 1 to 4."""
    deck = []
    for i in range(3):
        for _ in range(property_copies[i]):
            deck.append("property " + COLOURS[i])
    for i in range(4):
        for _ in range(cash_copies[i]):
            deck.append("cash " + str(i + 1))
    for i in range(3):
        for _ in range(rent_copies[i]):
            deck.append("rent " + COLOURS[i])
    for _ in range(just_say_no):
        deck.append(JUST_SAY_NO)
    return deck


def colour_of(card: str) -> str:
    """The colour of a property or rent card."""
    return card.split(" ")[1]


def set_size(colour: str) -> int:
    """How many properties of a colour make a complete set."""
    if colour == "brown":
        return 2
    if colour == "green":
        return 3
    if colour == "pink":
        return 3
    raise ValueError(f"unknown colour {colour!r}; known: {COLOURS}")


def rent_progression(colour: str) -> list[int]:
    """The rent for 1, 2, ... properties owned of a colour."""
    if colour == "brown":
        return [1, 2]
    if colour == "green":
        return [2, 4, 7]
    if colour == "pink":
        return [1, 2, 4]
    raise ValueError(f"unknown colour {colour!r}; known: {COLOURS}")


def card_worth(card: str) -> int:
    """What a card counts for as payment."""
    if card == "property brown":
        return 1
    if card == "property green":
        return 4
    if card == "property pink":
        return 2
    if card.startswith("cash "):
        return int(card.split(" ")[1])
    raise ValueError(f"{card!r} cannot be given as payment")
