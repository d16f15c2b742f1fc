"""Examples for the OpenAPI document: a run of Kuhn poker, and a short game against it.

Whatever is a whole request or a whole answer has one. A test validates each against its model, so
that they stay true.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from rejoinder_gateway.analysis_example import ANALYSIS

Json = dict[str, Any]


def install(app: FastAPI) -> None:
    """Put the examples into the document once it is made: FastAPI leaves out what is null."""
    without = app.openapi

    def document() -> Json:
        made = without()
        for name, examples in EXAMPLES.items():
            made["components"]["schemas"][name]["examples"] = examples
        return made

    app.openapi = document  # type: ignore[method-assign] # as FastAPI's documentation has it


_FINGERPRINT = "bf0e8cf086fc88b5d369ab12029cc70843f2219638311d7810d4b09b97c46624"
_DIGEST = "5cc918a7a0e75b16ac21ae81012a9e3b40716e1b03045ecefe3bee9872dbcd0b"
_MATCHES = {
    "random": {
        "mean_utility": 0.21,
        "utility_error": 0.12,
        "games": 400,
    }
}

# Runs

_RUN: Json = {
    "name": "kuhn",
    "game": "kuhn",
    "configuration_rules": {},
    "abstraction": "none",
    "fingerprint": _FINGERPRINT,
    "state": "running",
    "alive": True,
    "games": 4200,
    "target": 10_000,
    "games_per_second": 310.5,
    "seconds_left": 18.7,
    "version": 210,
    "mer": 0.042,
    "exploitability": 0.0312,
    "matches": _MATCHES,
    "utility_unit": "chips",
    "infosets": 12,
    "workers": [{"games": 2100, "leases": 105, "busy_seconds": 12.5, "up_seconds": 13.5}],
    "snapshots": [2000, 4000],
    "checkpointed": 1794837465.5,
}
_RUN_DETAIL: Json = _RUN | {
    "config": {"game": "kuhn", "rules": {}, "abstraction": "none", "seed": 1, "games": 10_000},
    "has_responses": False,
    "digest": _DIGEST,
    "provenance": [
        {
            "from_game": 0,
            "time": "2026-11-16T13:57:44Z",
            "rejoinder": "0.1.0",
            "kernel": "190bca13e9f73594",
            "commit": "fd7561b2ca3f06951d5c8900ec48bdb2efc30acb",
        }
    ],
}
_HISTORY: Json = {
    "records": [
        {"games": 2000, "mer": 0.061, "infosets": 12, "matches": _MATCHES},
        {"games": 4000, "mer": 0.042, "infosets": 12},
    ]
}
_FORECAST: Json = {
    "at": 4200,
    "what": "mer",
    "target": 0.03,
    "reached": None,
    "games": 7100.0,
    "low": 6200.0,
    "high": 9000.0,
    "chance": 0.985,
    "level": [0.0, 0.0046, 0.0121],
    "seconds": 9.3,
    "seconds_low": 6.4,
    "seconds_high": 15.4,
    "backtest": {
        "known": 1400.0,
        "games": 4200.0,
        "said": [0.0377, 0.0415, 0.0461],
        "was": 0.042,
        "held": True,
        "when_said": None,
        "when_was": None,
        "when_held": None,
    },
}

# Policies

_SNAPSHOTS: Json = {"snapshots": [{"games": 4000, "digest": _DIGEST, "newest": True}]}
_INFOSET: Json = {
    "identifier": "0000000000000002",
    "key": "0000000000000002",
    "description": {"player": 0, "card": "K", "moves": []},
    "visits": 1403,
    "reach": 233.8,
    "actions": [
        {"name": "pass", "latest": 0.25, "average": 0.22, "regret": 0.01},
        {"name": "bet", "latest": 0.75, "average": 0.78, "regret": 0.03},
    ],
    "snapshot": 4000,
}
_INFOSETS: Json = {"total": 12, "offset": 0, "limit": 1, "infosets": [_INFOSET]}
_POLICY_FILE: Json = {"games": 4000, "digest": _DIGEST, "infosets": [_INFOSET]}
_LOOKUP: Json = {"state": {"card": [2, 0], "moves": [0, 0, 0], "n_moves": 0, "first": 0}}
_LOOKUP_DEAL: Json = {  # of deal-medium: seat 1 owes 1, and may say no or give a property
    "state": {
        "hand": [[0, 2, 1, 1, 0, 0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1]],
        "bank": [[0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0]],
        "properties": [[1, 0, 1], [1, 0, 1]],
        "deck": [8, 7, 7, 9, 0, 8, 0, 9, 10, 7, 2],
        "discard": [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        "hand_count": [5, 5],
        "deck_count": 67,
        "mover": 1,
        "winner": -1,
        "streak_player": 0,
        "streak_index": 1,
        "turn": 5,
        "due": 0,
        "receiver": 0,
        "hands_dealt": 2,
        "owed": 1,
        "paid": 0,
        "initiating": 9,
        "n_responses": 0,
        "responses": [0, 0, 0, 0, 0, 0, 0, 0],
        "sets_needed": 2,
        "hand_size": 5,
        "draw": 2,
        "streak": 2,
        "turn_cap": 250,
    }
}
_FOUND: Json = {"to_move": 0, "known": True, "infoset": _INFOSET}

# Play

_NEW_GAME: Json = {"opponent": {"baseline": "risk-aware", "configuration": "deal-medium"}}
_NEW_GAME_AGAINST_A_RUN: Json = {
    "opponent": {"run": "paper"},
    "first": "random",
    "player": {"name": "Ada"},
}
_NEW_GAME_WITH_SEARCH: Json = {"opponent": {"run": "paper"}, "search": 2000}
_MOVE: Json = {"move_number": 0, "move": "property brown"}
_EVENTS: list[Json] = [
    {"number": 1, "actor": None, "name": "hidden", "text": "The agent draws a card"},
    {"number": 2, "actor": None, "name": "Q", "text": "You draw Q"},
    {"number": 3, "actor": 0, "name": "bet", "text": "The agent: bet"},
]
_VIEW: Json = {
    "player": 1,
    "card": "Q",
    "public_card": None,
    "first_player": 0,
    "moves": ["bet"],
    "to_move": 1,
    "over": False,
    "opponent_card": None,
    "chips_won": None,
}
_GAME: Json = {
    "id": "05395215925562d6",
    "game": "kuhn",
    "title": "Kuhn poker",
    "rules": {},
    "configuration": "kuhn",
    "opponent": {"name": "kuhn", "kind": "run", "run": "kuhn", "snapshot": 4000},
    "seat": 1,
    "open": False,
    "argmax": False,
    "search": 0,
    "move_number": 1,
    "to_move": 1,
    "your_turn": True,
    "over": False,
    "winner": None,
    "outcome": None,
    "utilities": None,
    "view": _VIEW,
    "legal": [
        {"number": 0, "name": "pass", "meanings": {}},
        {"number": 1, "name": "bet", "meanings": {}},
    ],
    "events": _EVENTS,
}
_CREATED: Json = {"secret": "Wc3sXq0mR1nZ8yT5uK2vB7pL4dH6fJ9gA0eC3iM8oQ4", "game": _GAME}
_CALL: Json = {"number": 4, "actor": 1, "name": "bet", "text": "You: bet"}
_OVER: Json = {
    "moves": ["bet", "bet"],
    "to_move": None,
    "over": True,
    "opponent_card": "J",
    "chips_won": 2.0,
}
_MOVED: Json = {
    "game": _GAME
    | {
        "move_number": 2,
        "to_move": None,
        "your_turn": False,
        "over": True,
        "winner": 1,
        "outcome": "won",
        "utilities": [-2.0, 2.0],
        "view": _VIEW | _OVER,
        "legal": [],
        "events": [*_EVENTS, _CALL],
    },
    "events": [_CALL],
}
_ADVICE: Json = {
    "infoset": {"player": 1, "card": "Q", "moves": ["bet"]},
    "identifier": "0000000000000125",
    "known": True,
    "visits": 702,
    "snapshot": 4000,
    "actions": [
        {"name": "pass", "probability": 0.66, "move": "pass"},
        {"name": "bet", "probability": 0.34, "move": "bet"},
    ],
}
_ADVICE_BY_SEARCH: Json = _ADVICE | {
    "search": 2000,
    "actions": [
        {"name": "pass", "probability": 1.0, "move": "pass", "value": -1.0},
        {"name": "bet", "probability": 0.0, "move": "bet", "value": -1.062},
    ],
}
_DECISION: Json = {
    "infoset": {"player": 0, "card": "J", "moves": []},
    "identifier": "0000000000000000",
    "known": True,
    "visits": 1391,
    "snapshot": 4000,
    "actions": [
        {"name": "pass", "probability": 0.74, "move": "pass"},
        {"name": "bet", "probability": 0.26, "move": "bet"},
    ],
    "move_number": 0,
    "move": "bet",
}
_REPLAY: Json = {
    "steps": [
        {
            "number": 3,
            "actor": 0,
            "name": "bet",
            "views": [_VIEW | {"player": 0, "card": "J"}, _VIEW],
            "decision": _DECISION,
        }
    ]
}
_TICKET: Json = {"ticket": "7ruFc-7Iyb6QPUJDzb40RMxt7Yxo_x8K", "seconds": 60}
_RESULTS: Json = {
    "results": [
        {
            "id": "05395215925562d6",
            "game": "kuhn",
            "configuration": "kuhn",
            "opponent": "kuhn",
            "opponent_kind": "run",
            "snapshot": 4000,
            "argmax": False,
            "search": 0,
            "open": False,
            "seat": 1,
            "player_name": "Ada",
            "outcome": "won",
            "winner": 1,
            "utility": 2.0,
            "moves": 2,
            "created": "2026-11-16T13:57:46.312727+00:00",
            "finished": "2026-11-16T13:58:02.492765+00:00",
        }
    ]
}

# Service

_ABOUT: Json = {
    "name": "rejoinder",
    "version": "0.1.0",
    "links": {"openapi": "/api/v1/openapi.json", "runs": "/api/v1/runs", "page": "/"},
    "games": ["deal-medium", "kuhn", "leduc"],
    "limits": {"body_bytes": 65_536, "requests_per_second": 100, "search_samples": 10_000},
}
CATALOGUE_ENTRY: Json = {
    "name": "kuhn",
    "title": "Kuhn poker",
    "configurations": [{"name": "standard", "full_name": "kuhn", "rules": {}}],
    "abstractions": [{"name": "none", "actions": ["pass", "bet"]}],
    "players": 2,
    "baselines": ["random"],
    "moves": ["pass", "bet"],
}
_READINESS: Json = {
    "status": "ready",
    "checks": {"database": "ok", "runs": "ok", "kernels": "ok"},
}

EXAMPLES: dict[str, list[Json]] = {  # by model
    "RunList": [{"runs": [_RUN]}],
    "RunDetail": [_RUN_DETAIL],
    "History": [_HISTORY],
    "Forecast": [_FORECAST],
    "Accepted": [{"status": "stopping"}],
    "ResponseAnalysis": [ANALYSIS],
    "SnapshotList": [_SNAPSHOTS],
    "Infoset": [_INFOSET],
    "InfosetPage": [_INFOSETS],
    "PolicyFile": [_POLICY_FILE],
    "Lookup": [_LOOKUP, _LOOKUP_DEAL],
    "Found": [_FOUND],
    "NewGame": [_NEW_GAME, _NEW_GAME_AGAINST_A_RUN, _NEW_GAME_WITH_SEARCH],
    "Move": [_MOVE],
    "GameState": [_GAME],
    "Created": [_CREATED],
    "Moved": [_MOVED],
    "Advice": [_ADVICE, _ADVICE_BY_SEARCH],
    "Decisions": [{"decisions": [_DECISION]}],
    "Events": [{"events": _EVENTS}],
    "Replay": [_REPLAY],
    "Ticket": [_TICKET],
    "Results": [_RESULTS],
    "About": [_ABOUT],
    "CatalogueEntry": [CATALOGUE_ENTRY],
    "Status": [{"status": "ok"}],
    "Readiness": [_READINESS],
}
