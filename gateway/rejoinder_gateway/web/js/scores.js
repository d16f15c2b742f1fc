/**
 * What an evaluation is measured by. Where every game is won, drawn or lost for the same stake, the
 * mean utility follows from the win rate, which is easier to read; where it does not, stakes differ,
 * and winning often is not winning much.
 *
 * @typedef {{win_rate: number, low: number, high: number, draw_rate?: number, mean_utility?: number}} Rates
 */

import { percent, signed } from "./ui.js";

const CLOSE = 1e-6;

const WIN_RATE = {
  title: "Win rate",
  about: "Against each baseline, with its 95 % confidence band.",
  axis: { range: [0, 1.02], tickformat: ".0%" },
  hover: "%{y:.0%}",
  banded: true,
  /** @param {Rates} rates */
  of: (rates) => rates.win_rate,
  /** @param {Rates} rates */
  text: (rates) => percent(rates.win_rate),
};

const UTILITY = {
  title: "Mean utility",
  about: "What it wins a game on average, against each baseline; below zero it loses.",
  axis: { rangemode: "tozero" },
  hover: "%{y:+.2f}",
  banded: false,
  /** @param {Rates} rates */
  of: (rates) => rates.mean_utility ?? 0,
  /** @param {Rates} rates */
  text: (rates) => `${signed(rates.mean_utility ?? 0, 2)} a game`,
};

/** @param {Rates[]} evaluations */
export function measureOf(evaluations) {
  return evaluations.some(staked) ? UTILITY : WIN_RATE;
}

/** @param {Rates} rates */
function staked({ win_rate, draw_rate = 0, mean_utility }) {
  return mean_utility !== undefined && Math.abs(mean_utility - (2 * win_rate + draw_rate - 1)) > CLOSE;
}
