"""When runs reach a target: the fitted curve, made once for what was measured, at today's speed.

A fit takes a fraction of a second of one core, so it is long work. The figures are those of
`rejoinder forecast`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from rejoinder.measure.forecast import ForecastError
from rejoinder.measure.targets import Target, Told, foresee
from rejoinder_gateway.library import Run
from rejoinder_gateway.problems import Problem
from rejoinder_gateway.schemas import Forecast
from rejoinder_gateway.untrusted import TrainerStatus
from rejoinder_gateway.work import Work

KEPT = 256  # forecasts
WAITING = 16

_Key = tuple[str, Target, bytes]  # the run's id, what is asked for, what was measured


class Forecasts:
    def __init__(self) -> None:
        self.work: Work[_Key, Told] = Work("forecasts", kept=KEPT, most=WAITING, again=5)

    async def of(self, run: Run, target: Target) -> Forecast:
        """That of a run as it stands; a problem if too little was measured."""
        said = run.standing()
        try:
            series = target.series(run.metrics())
            key = (run.directory.id, target, series.mark())
            told = await self.work.get(key, partial(foresee, series, target))
        except ForecastError as error:
            raise Problem(409, "No forecast yet", str(error)) from None
        return Forecast(at=said.games, **told.at_speed(_speed(said)).plain())


def _speed(said: TrainerStatus) -> dict[str, Any]:
    """A trainer that is still starting may have left the speed of the one before."""
    return dict(said) | {"alive": said.alive and said.state != "starting"}
