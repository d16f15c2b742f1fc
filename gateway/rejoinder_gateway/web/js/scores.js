/**
 * What an evaluation is measured by. Where every game is won, drawn or lost for the same stake, the
 * mean utility follows from the win rate, which is easier to read; where it does not, stakes differ,
 * and winning often is not winning much.
 *
 * @typedef {{win_rate: number, low: number, high: number, draw_rate?: number, mean_utility?: number, utility_error?: number}} Rates
 */

import { number, percent, signed } from "./ui.js";

const CLOSE = 1e-6;

const WIN_RATE = {
  title: "Win rate",
  about: "Against each baseline, with its 95 % confidence band.",
  axis: { range: [0, 1.02], tickformat: ".0%" },
  hover: "%{y:.0%}",
  /** @param {Rates} rates */
  of: (rates) => rates.win_rate,
  /** @param {Rates} rates */
  band: ({ low, high }) => [low, high],
  /** @param {Rates} rates */
  text: (rates) => percent(rates.win_rate),
};

const UTILITY = {
  title: "Mean utility",
  about: "What it wins a game on average, against each baseline, with its 95 % confidence band; below zero it loses.",
  axis: { rangemode: "tozero" },
  hover: "%{y:+.2f}",
  /** @param {Rates} rates */
  of: (rates) => rates.mean_utility ?? 0,
  /** Older runs do not tell the error. @param {Rates} rates */
  band: ({ mean_utility: mean = 0, utility_error: error = 0 }) => [mean - error, mean + error],
  /** @param {Rates} rates */
  text: ({ mean_utility: mean = 0, utility_error: error }) => `${signed(mean, 2)}${error === undefined ? "" : ` ± ${number(error, 2)}`} a game`,
};

/** @param {Rates[]} evaluations */
export function measureOf(evaluations) {
  return evaluations.some(staked) ? UTILITY : WIN_RATE;
}

/** @param {Rates} rates */
function staked({ win_rate, draw_rate = 0, mean_utility }) {
  return mean_utility !== undefined && Math.abs(mean_utility - (2 * win_rate + draw_rate - 1)) > CLOSE;
}
