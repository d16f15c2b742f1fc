/**
 * What an evaluation is measured by: the mean utility of a match, and the win rate where the game counts
 * wins. An evaluation has a win rate there and nowhere else.
 *
 * @typedef {{mean_utility: number, utility_error?: number, win_rate?: number, low?: number, high?: number, draw_rate?: number}} Match
 */

import { number, percent, signed } from "./ui.js";

/** @param {Match[]} matches */
export const countsWins = (matches) => matches.some(({ win_rate }) => win_rate !== undefined);

/** What a game was worth, in the unit of the game's utility; of one deal there is no error. @param {Match} match @param {string} unit */
export function utility({ mean_utility: mean, utility_error: error }, unit) {
  return `${signed(mean, 2)}${error === undefined ? "" : ` ± ${number(error, 2)}`} ${unit} a game`;
}

/** @param {Match} match @param {string} unit */
export const inWords = (match, unit) => `${utility(match, unit)}${match.win_rate === undefined ? "" : ` (${percent(match.win_rate)} won)`}`;

/** @param {string} unit */
export const utilityMeasure = (unit) => ({
  title: "Mean utility",
  about: `What it wins against each baseline, in ${unit} a game, with its 95 % confidence band; below zero it loses.`,
  axis: { rangemode: "tozero" },
  hover: "%{y:+.2f}",
  /** @param {Match} match */
  of: (match) => match.mean_utility,
  /** @param {Match} match */
  band: ({ mean_utility: mean, utility_error: error = 0 }) => [mean - error, mean + error],
  /** @param {Match} match */
  text: (match) => utility(match, unit),
});

export const WIN_RATE = {
  title: "Win rate",
  about: "Against each baseline, with its 95 % confidence band.",
  axis: { range: [0, 1.02], tickformat: ".0%" },
  hover: "%{y:.0%}",
  /** @param {Match} match */
  of: ({ win_rate: rate = 0 }) => rate,
  /** @param {Match} match */
  band: ({ low = 0, high = 0 }) => [low, high],
  /** @param {Match} match */
  text: ({ win_rate: rate = 0 }) => percent(rate),
};
