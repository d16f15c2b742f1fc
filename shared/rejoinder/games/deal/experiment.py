"""The paper's experiment (Wolf, 2025, Table 1) and its claims (section 7).

The bounds of claims come from how exactly the paper states its number, never from ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rejoinder.games.base import Abstraction
from rejoinder.games.deal import GAME
from rejoinder.measure.experiments import Claim, Evidence, Experiment, PolicyFigure, Reading
from rejoinder.measure.match import Starts
from rejoinder.methods.policies import AVERAGE

TARGET_PLAYER = 0  # the seat that the paper reports on
_FIRST: Starts = "agent"
_ALTERNATING: Starts = "alternate"


def target_policy(rows: Any, abstraction: Abstraction) -> dict[str, float]:
    """The paper's Figure 5: by action, the median over the target player's infosets in which it has
    nonzero probability; actions that have none anywhere are left out."""
    seats = np.array([abstraction.describe(int(key))["player"] for key in rows["key"]], int)
    average = rows["policy"][seats == TARGET_PLAYER, AVERAGE]
    return {
        name: float(np.median(average[average[:, a] > 0, a]))
        for a, name in enumerate(abstraction.actions)
        if (average[:, a] > 0).any()
    }


def _win_rate(opponent: str) -> Callable[[Evidence], Reading | None]:
    def read(subject: Evidence) -> Reading | None:
        first, either = (subject.final(opponent, starts) for starts in (_FIRST, _ALTERNATING))
        if first is None or either is None:
            return None
        text = (
            f"{either.win_rate:.1%} with alternating starts ({either.low:.1%} to {either.high:.1%})"
            f", {first.win_rate:.1%} going first ({first.low:.1%} to {first.high:.1%}); "
            f"{either.games:,} games each"
        )
        return Reading(either.win_rate, text)

    return read


def _mer_falls(subject: Evidence) -> Reading | None:
    known = _mer(subject)
    if len(known) < 2:
        return None
    first, end = min(known), max(known)
    early = min((n for n in known if n > first), key=lambda n: abs(n - end / 4))
    share = known[early] / known[first]
    return Reading(
        share,
        f"{known[first]:.4f} after {first:,} games, {known[early]:.4f} after {early:,}: "
        f"{share:.0%}",
    )


def _mer_settles(subject: Evidence) -> Reading | None:
    known = _mer(subject)
    if len(known) < 5:
        return None
    first, end = min(known), max(known)
    late = min(known, key=lambda n: abs(n - 0.8 * end))
    fall = known[first] - known[end]
    share = abs(known[late] - known[end]) / fall if fall > 0 else math.inf
    return Reading(
        share,
        f"{share:.1%} of the fall is in the last fifth of the games ({known[late]:.4f} to "
        f"{known[end]:.4f})",
    )


def _mer(subject: Evidence) -> dict[int, float]:
    return {r["games"]: r["mer"] for r in subject.records if "mer" in r}


def _updates(quantile: str) -> Callable[[Evidence], Reading | None]:
    def read(subject: Evidence) -> Reading | None:
        last = _last(subject, "updates")
        return Reading(last[quantile], f"{last[quantile]:,.0f}") if last else None

    return read


def _infosets(subject: Evidence) -> Reading:
    """As the paper's keys count them, which are of one seat each."""
    keys = [int(key) for key in subject.keys]
    describe = subject.config.load_abstraction().describe
    seen = {repr({k: v for k, v in describe(key).items() if k != "player"}) for key in keys}
    return Reading(
        len(keys), f"{len(keys)}, of both seats; {len(seen)} if a seat's own count as one"
    )


def _seconds(subject: Evidence) -> Reading | None:
    seconds = subject.seconds
    if seconds is None:
        return None
    by = f" with {subject.workers} workers" if subject.workers > 1 else ""
    return Reading(seconds, f"{seconds:.0f} s for {subject.games:,} games{by}, start-up included")


def _preferred(
    better: tuple[str, ...], worse: tuple[str, ...]
) -> Callable[[Evidence], Reading | None]:
    """How far the lowest median of some actions is above the highest of others.

    What counts is the paper's median. Ours, over real choices, is told beside it.
    """

    def read(subject: Evidence) -> Reading | None:
        known = subject.experiment_policy
        papers = known[max(known)] if known else {}
        margin = _margin(papers, better, worse)
        if margin is None:
            return None
        text = f"the paper’s medians: {_told(papers, better, worse)}"
        ours = _last(subject, "policy")
        over_choices = _margin(ours, better, worse)
        if over_choices is not None:
            so = "holds" if over_choices > 0 else "does not hold"
            text += f"; over real choices it {so}: {_told(ours, better, worse)}"
        return Reading(margin, text)

    return read


def _margin(
    policy: Mapping[str, float], better: tuple[str, ...], worse: tuple[str, ...]
) -> float | None:
    if not {*better, *worse} <= policy.keys():
        return None
    return min(policy[name] for name in better) - max(policy[name] for name in worse)


def _told(policy: Mapping[str, float], *groups: tuple[str, ...]) -> str:
    sides = (", ".join(f"{_words(name)} {policy[name]:.0%}" for name in names) for names in groups)
    return " against ".join(sides)


def _last(subject: Evidence, part: str) -> Mapping[str, float]:
    known = [record[part] for record in subject.records if part in record]
    return known[-1] if known else {}


def _words(action: str) -> str:
    return action.replace("_", " ").lower()


_ANY = math.inf
_MARGIN = math.ulp(0.0)  # above zero: a preference is one by however little

_MEDIANS = (
    "The paper’s median is over the target player’s infosets in which the action has any "
    "probability: those where it is forced count, and those where the agent avoids it do not, so "
    "even an action that is only taken when there is no other is at 100 %. Over real choices "
    "(every infoset of both seats where the action is one of several, zeros included) a median "
    "says what the agent prefers"
)

CLAIMS = (
    Claim(
        *("7.3, Figure 3", "wins nearly all games against the random baseline", "nearly 100 %"),
        *(_win_rate("random"), 0.95, 1.0),
        "the paper plays 20 games an evaluation: nearly all of them is at least 19",
    ),
    Claim(
        *("7.3, Figure 3", "wins most games against the risk-aware baseline", "roughly 75 %"),
        *(_win_rate(str(GAME.baseline)), 0.69, 0.81),
        "the last ten evaluations of 20 games that the figure shows: 75 % ± 6 points",
    ),
    Claim(
        *("7.2, Figure 2", "MER declines during early training", "declines"),
        *(_mer_falls, 0.0, 0.5),
        "the share that is left after a quarter of the games; a halving is more than scatter",
    ),
    Claim(
        "7.2, Figure 2",
        "MER reaches a relatively stable state within 1,000 games",
        "stable",
        *(_mer_settles, 0.0, 0.1),
        "stable: the last fifth of the games has at most half of its even share of the fall",
    ),
    Claim(
        *("7.4, Figure 4", "the median infoset is updated about 50 times", "roughly 50"),
        *(_updates("median"), 25, 100),
        "“roughly”, off a logarithmic axis: a factor of two",
        ",.0f",
    ),
    Claim(
        *("7.4, Figure 4", "the most common infoset about 2,000 times", "approximately 2,000"),
        *(_updates("max"), 1_000, 4_000),
        "“approximately”, off a logarithmic axis: a factor of two",
        ",.0f",
    ),
    Claim(
        *("6.1", "the abstraction yields about a hundred infosets", "roughly 100"),
        *(_infosets, 67, 150),
        "“roughly one hundred”: a factor of one and a half",
        ",.0f",
    ),
    Claim(
        *("7, 7.2", "trains in 19 minutes on eight cores", "19 min"),
        *(_seconds, 0.0, 19 * 60),
        "seconds, no longer than the paper’s; both include the evaluations",
        ",.0f",
    ),
    Claim(
        "7.5, Figure 5",
        "in response prefers JUST_SAY_NO and GIVE_OPPONENT_CASH to GIVE_OPPONENT_PROPERTY",
        "prefers",
        _preferred(("JUST_SAY_NO", "GIVE_OPPONENT_CASH"), ("GIVE_OPPONENT_PROPERTY",)),
        *(_MARGIN, _ANY),
        f"the lower of the two medians is above the third. {_MEDIANS}",
    ),
    Claim(
        "7.5, Figure 5",
        "in normal play prefers ADD_TO and COMPLETE_PROPERTY_SET to CASH",
        "prefers",
        _preferred(("ADD_TO_PROPERTY_SET", "COMPLETE_PROPERTY_SET"), ("CASH",)),
        *(_MARGIN, _ANY),
        "the lower of the two medians is above the third; both kinds of median as above",
    ),
    Claim(
        "7.5, Figure 5",
        "actions that build property are favoured",
        "favoured",
        _preferred(
            ("START_NEW_PROPERTY_SET", "ADD_TO_PROPERTY_SET", "COMPLETE_PROPERTY_SET"),
            ("ATTEMPT_COLLECT_RENT", "CASH", "PASS"),
        ),
        *(_MARGIN, _ANY),
        "the lowest median of an action that builds is above the highest of those that do not; "
        "both kinds of median as above",
    ),
)

EXPERIMENT = Experiment(
    source="W. Wolf, Monopoly Deal (2025), section 7",
    config="paper",
    games=1_000,
    # Other seeds and ways of spreading the work are the same experiment; all else Table 1 fixes.
    free=frozenset({"seed", "order", "batch", "lag"}),
    # A checkpoint at every evaluation, so that matches can be played there.
    settings=("checkpoint_every=50", "checkpoints_kept=25"),
    quick=("games=200", "eval_every=20", "checkpoint_every=20", "checkpoints_kept=25"),
    claims=CLAIMS,
    figures={"mer": 2, "win-rate": 3, "updates": 4, "target-policy": 5},
    policy=PolicyFigure(
        "Median probability of each action, as the paper takes it",
        "For each action the median of the average policy’s probability over the first seat’s "
        "infosets in which it has any. Where an action is forced it counts, and where it is "
        "avoided it does not: the next figure says more of what the agent prefers.",
        target_policy,
    ),
)
