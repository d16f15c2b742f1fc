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

from rejoinder.config import RunConfig, load_config
from rejoinder.games.deal import GAME as DEAL
from rejoinder_cli.report.subject import ALTERNATING, FIRST, Subject

PAPER = "paper"  # the config of the experiment
PAPER_GAMES = 1_000
# Other seeds and ways of spreading the work are the same experiment; all else Table 1 fixes.
_FREE = {"seed", "order", "batch", "lag"}

_Whole = Callable[[list[float]], float]
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


def is_experiment(config: RunConfig) -> bool:
    """Whether a run is the paper's experiment, with whatever seed and length."""
    ours, papers = config.learning_fields(), load_config(PAPER).learning_fields()
    return all(ours[name] == papers[name] for name in papers.keys() - _FREE)


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
    describe = subject.config.load_abstraction().describe
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
    better: tuple[str, ...], worse: tuple[str, ...], of: _Whole = min, over: _Whole = max
) -> Callable[[Subject], Reading | None]:
    """How far some actions' medians (`of` them all) are above (what is `over`) those of others."""

    def read(subject: Subject) -> Reading | None:
        policy = _last(subject, "policy")
        if not policy or not {*better, *worse} <= policy.keys():
            return None
        margin = of([policy[name] for name in better]) - over([policy[name] for name in worse])
        told = [f"{_words(name)} {policy[name]:.0%}" for name in (*better, *worse)]
        return Reading(margin, f"medians: {', '.join(told)}")

    return read


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _last(subject: Subject, part: str) -> Mapping[str, float]:
    known = [record[part] for record in subject.records if part in record]
    return known[-1] if known else {}


def _words(action: str) -> str:
    return action.replace("_", " ").lower()


_ANY = math.inf
_MARGIN = math.ulp(0.0)  # above zero: a preference is one by however little

CLAIMS = (
    Claim(
        *("7.3, Figure 3", "wins nearly all games against the random baseline", "nearly 100 %"),
        *(_win_rate("random"), 0.95, 1.0),
        "the paper plays 20 games an evaluation: nearly all of them is at least 19",
    ),
    Claim(
        *("7.3, Figure 3", "wins most games against the risk-aware baseline", "roughly 75 %"),
        *(_win_rate(str(DEAL.baseline)), 0.69, 0.81),
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
        "the lower of the two medians is above the third, where there is a choice",
    ),
    Claim(
        "7.5, Figure 5",
        "in normal play prefers ADD_TO and COMPLETE_PROPERTY_SET to CASH",
        "prefers",
        _preferred(("ADD_TO_PROPERTY_SET", "COMPLETE_PROPERTY_SET"), ("CASH",)),
        *(_MARGIN, _ANY),
        "the lower of the two medians is above the third, where there is a choice",
    ),
    Claim(
        "7.5, Figure 5",
        "actions that build property are favoured",
        "favoured",
        _preferred(
            ("START_NEW_PROPERTY_SET", "ADD_TO_PROPERTY_SET", "COMPLETE_PROPERTY_SET"),
            ("ATTEMPT_COLLECT_RENT", "CASH", "PASS"),
            *(_mean, _mean),
        ),
        *(_MARGIN, _ANY),
        "the mean of the building actions’ medians is above that of the others’",
    ),
)
