"""The example of an analysis of response phases: that of the `micro` run after 2,000 games."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def _about(value: float, low: float, high: float) -> Json:
    return {"value": value, "low": low, "high": high}


_NEVER = _about(0.0, 0.0, 0.0069)
_OUTCOMES: dict[str, tuple[int, Json, Json | None]] = {
    "cancelled at once": (192, _about(0.1744, 0.1478, 0.2046), _about(-1.0, -1.0, -1.0)),
    "cancelled part-paid": (0, _NEVER, None),
    "paid in cash": (751, _about(0.6821, 0.6448, 0.7172), _about(-1.0, -1.0, -1.0)),
    "paid in property": (158, _about(0.1435, 0.1167, 0.1753), _about(0.0, 0.0, 0.0)),
    "paid in both": (0, _NEVER, None),
    "yielded": (0, _NEVER, None),
}
_CHARGES: Json = {
    "phases": 1101,
    "by_seat": [505, 596],
    "per_game": _about(0.2752, 0.2557, 0.2948),
    "charged": _about(1.0, 1.0, 1.0),
    "paid_in_cash": _about(0.6821, 0.6458, 0.7184),
    "paid_in_property": _about(0.1435, 0.1142, 0.1728),
    "overpaid": _about(0.0, 0.0, 0.0),
    "cards": _about(1.0, 1.0, 1.0),
    "utility": _about(-0.8565, -0.8858, -0.8272),
    "outcomes": [
        {"outcome": name, "count": count, "share": share, "utility": utility}
        for name, (count, share, utility) in _OUTCOMES.items()
    ],
    "amounts": [
        {
            "charged": 1,
            "count": 1101,
            "outcomes": {name: count for name, (count, _, _) in _OUTCOMES.items()},
            "utility": _about(-0.8565, -0.8858, -0.8272),
        }
    ],
    "choices": [
        {"first": True, "times": 82, "chosen": {"refuse": 82, "give property": 0}},
        {"first": True, "times": 359, "chosen": {"give cash": 359, "give property": 0}},
        {
            "first": True,
            "times": 210,
            "chosen": {"refuse": 110, "give cash": 100, "give property": 0},
        },
    ],
}
_INITIATOR: Json = {
    "infosets": 38,
    "choices": 36,
    "updates": 8109,
    "reach": 0.9583,
    "mer_share": 0.0053,
    "regret_by_reach": 0.0055,
    "regret_by_updates": 0.0062,
    "positive_regret_by_reach": 0.002,
    "positive_regret_by_updates": 0.0023,
    "entropy_by_reach": 0.0063,
    "entropy_by_updates": 0.0102,
    "evenness_by_reach": 0.0045,
    "evenness_by_updates": 0.0079,
    "decisions": _about(3.9855, 3.938, 4.033),
    "value": _about(0.1558, 0.1493, 0.1623),
}
_RESPONDER: Json = {
    "infosets": 16,
    "choices": 8,
    "updates": 474,
    "reach": 0.0417,
    "mer_share": 0.0002,
    "regret_by_reach": 0.0057,
    "regret_by_updates": 0.006,
    "positive_regret_by_reach": 0.0031,
    "positive_regret_by_updates": 0.0033,
    "entropy_by_reach": 0.2968,
    "entropy_by_updates": 0.2945,
    "evenness_by_reach": 0.2025,
    "evenness_by_updates": 0.2048,
    "decisions": _about(0.2752, 0.2557, 0.2948),
    "value": _about(0.8565, 0.8272, 0.8858),
}
ANALYSIS: Json = {
    "opponent": "itself",
    "games": 4000,
    "seed": 1,
    "roles": {"initiator": _INITIATOR, "responder": _RESPONDER},
    "charges": {"either": _CHARGES},
    "refusal": {
        "deals": 2000,
        "compared": 1180,
        "right": _about(0.0254, 0.0166, 0.0343),
        "card": _about(-0.261, -0.2975, -0.2246),
        "right_wins": _about(0.0254, 0.0166, 0.0343),
        "card_wins": _about(-0.1085, -0.1292, -0.0877),
    },
    "exploitability": {
        "method": "exact",
        "by_responses": _about(0.0, 0.0, 0.0),
        "by_main_play": _about(0.0321, 0.0321, 0.0321),
        "whole": _about(0.0321, 0.0321, 0.0321),
        "samples": None,
        "games": None,
    },
    "snapshot": 2000,
    "digest": "9741ab04cb9a9326061cbe4464d2a4a237dd06ce07b94e2b0dee78493af4277e",
}
