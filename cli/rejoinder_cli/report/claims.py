"""The claims of the paper (Wolf, 2025, section 7), each with what a run says to it.

A claim is data: the paper's words and number, how the same thing is read off a run, and between
which bounds it counts as reproduced, with the reason for those bounds. Bounds come from how exactly
the paper states its number, never from ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rejoinder.games.deal import GAME as DEAL
from rejoinder_cli.report.subject import ALTERNATING, FIRST, Subject

Verdict = Literal["reproduced", "not reproduced", "not measured"]


@dataclass(frozen=True)
class Reading:
    """What a run says: the number that counts, and how it is told."""

    value: float
    text: str


@dataclass(frozen=True)
class Claim:
    """One claim; `least` and `most` bound what counts as reproduced, `why` is their reason."""

    where: str
    text: str
    paper: str
    read: Callable[[Subject], Reading | None]
    least: float
    most: float
    why: str
    form: str = ".0%"  # how the bounds are written

    @property
    def counts(self) -> str:
        """Its bounds, for people."""
        if math.isinf(self.most):
            return "counts if above zero"
        return f"counts from {self.least:{self.form}} to {self.most:{self.form}}"

    def judge(self, subject: Subject) -> Judgement:
        reading = self.read(subject)
        if reading is None or math.isnan(reading.value):
            return Judgement(self, None, "not measured")
        held = self.least <= reading.value <= self.most
        return Judgement(self, reading, "reproduced" if held else "not reproduced")


@dataclass(frozen=True)
class Judgement:
    claim: Claim
    reading: Reading | None
    verdict: Verdict

    @property
    def direction(self) -> str:
        """Where ours is if it is not the paper's."""
        if self.reading is None or self.verdict != "not reproduced":
            return ""
        if math.isinf(self.claim.most):
            return ""  # a preference is there or not
        return "ours is higher" if self.reading.value > self.claim.most else "ours is lower"

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        reading = self.reading
        return {
            "claim": self.claim.text,
            "paper": self.claim.paper,
            "value": reading.value if reading else None,
            "ours": reading.text if reading else None,
            "verdict": self.verdict,
        }


def judge_all(subject: Subject) -> list[Judgement]:
    return [claim.judge(subject) for claim in CLAIMS]


def _win_rate(opponent: str) -> Callable[[Subject], Reading | None]:
    def read(subject: Subject) -> Reading | None:
        first, either = (subject.final(opponent, starts) for starts in (FIRST, ALTERNATING))
        if first is None or either is None:
            return None
        text = (
            f"{either.win_rate:.1%} with alternating starts ({either.low:.1%} to {either.high:.1%})"
            f", {first.win_rate:.1%} going first ({first.low:.1%} to {first.high:.1%}); "
            f"{either.games:,} games each"
        )
        return Reading(either.win_rate, text)

    return read


def _mer_falls(subject: Subject) -> Reading | None:
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


def _mer_settles(subject: Subject) -> Reading | None:
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


def _mer(subject: Subject) -> dict[int, float]:
    return {r["games"]: r["mer"] for r in subject.records if "mer" in r}


def _updates(quantile: str) -> Callable[[Subject], Reading | None]:
    def read(subject: Subject) -> Reading | None:
        last = _last(subject, "updates")
        return Reading(last[quantile], f"{last[quantile]:,.0f}") if last else None

    return read


def _infosets(subject: Subject) -> Reading:
    """As the paper's keys count them, which are of one seat each."""
    keys = [int(key) for key in subject.opened.checkpoint.rows["key"]]
    describe = subject.config.load_abstraction().description
    seen = {repr({k: v for k, v in describe(key).items() if k != "player"}) for key in keys}
    return Reading(
        len(keys), f"{len(keys)}, of both seats; {len(seen)} if a seat's own count as one"
    )


def _seconds(subject: Subject) -> Reading | None:
    seconds = subject.seconds
    if seconds is None:
        return None
    workers = len(subject.opened.run.workers()["first_game"])
    by = f" with {workers} workers" if workers > 1 else ""
    return Reading(seconds, f"{seconds:.0f} s for {subject.games:,} games{by}, start-up included")


def _preferred(
    better: tuple[str, ...], worse: tuple[str, ...]
) -> Callable[[Subject], Reading | None]:
    """How far the lowest median of some actions is above the highest of others.

    What counts is the paper's median. Ours, over real choices, is told beside it.
    """

    def read(subject: Subject) -> Reading | None:
        papers = subject.target_policy[max(subject.target_policy)] if subject.target_policy else {}
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


def _last(subject: Subject, part: str) -> Mapping[str, float]:
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
        *(_win_rate(DEAL.baselines[0]), 0.69, 0.81),
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
