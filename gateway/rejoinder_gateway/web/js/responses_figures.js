/**
 * An analysis of response phases, drawn: outcomes, choices, roles, the worth of a refusal and what the
 * answers give away. docs/analytics.md says what each figure means.
 *
 * @typedef {{value: number, low: number, high: number}} Estimate
 * @typedef {{outcome: string, count: number, share: Estimate|null, utility: Estimate|null}} Outcome
 * @typedef {{first: boolean, times: number, chosen: Record<string, number>}} Choice
 * @typedef {{phases: number, by_seat: [number, number], per_game: Estimate, charged: Estimate|null, paid_in_cash: Estimate|null,
 *   paid_in_property: Estimate|null, overpaid: Estimate|null, cards: Estimate|null, utility: Estimate|null, outcomes: Outcome[],
 *   choices: Choice[]}} Charges
 * @typedef {Record<string, any> & {value: Estimate|null, decisions: Estimate, infosets: number, choices: number}} Role
 * @typedef {{deals: number, compared: number, right: Estimate|null, card: Estimate|null, right_wins: Estimate|null, card_wins: Estimate|null}} Refusal
 * @typedef {{method: string, by_responses: Estimate, by_main_play: Estimate, whole: Estimate, samples: number|null, games: number|null}} Exploitability
 * @typedef {{opponent: string, games: number, snapshot: number, charges: Record<string, Charges>, roles: Record<string, Role>,
 *   refusal: Refusal|null, exploitability: Exploitability|null}} Analysis
 */

import { bar, count, h, number, percent, readable, signed } from "./ui.js";

/** @type {Record<string, string>} */
const OUTCOMES = { "cancelled at once": "Refused at once (Just Say No)", "cancelled part-paid": "Refused when part was paid", yielded: "Yielded: nothing left to give" };
/** @type {Record<string, string>} */
const SIDES = { agent: ", charged by the agent", opponent: ", charged by its opponent" };

/** @param {Analysis} analysis */
export function analysisFigures({ opponent, games, snapshot, charges, roles, refusal, exploitability }) {
  const sides = Object.entries(charges);
  return h(
    "div",
    { class: "responses__figures" },
    h("p", { class: "hint", text: `${count(games, "game")} of the agent against ${opponent}, by its snapshot of ${count(snapshot, "game")}. Ranges are 95 % intervals.` }),
    h(
      "div",
      { class: "responses__grid" },
      ...sides.map(([who, made]) => part(`What becomes of a charge${SIDES[who] ?? ""}`, ...chargeFigures(made))),
      ...sides.map(([who, made]) => part(`What is chosen${SIDES[who] ?? ""}`, ...choiceFigures(made.choices))),
      part("By role", roleTable(roles.initiator, roles.responder)),
      h("div", { class: "responses__pair" }, part("What a Just Say No in hand is worth", ...refusalFigures(refusal)), exploitability ? part("What its answers give away", ...exploitFigures(exploitability)) : null),
    ),
  );
}

/** @param {string} title @param {...(Node|null)} children */
function part(title, ...children) {
  return h("section", { class: "responses__part" }, h("h3", { text: title }), ...children);
}

/** @param {Charges} charges */
function chargeFigures(charges) {
  if (!charges.phases) return [h("p", { class: "hint", text: "No rent was charged in these games." })];
  const [first, second] = charges.by_seat;
  return [
    h("p", { class: "responses__lead" }, h("strong", { "data-figure": "per_game", text: number(charges.per_game.value, 2) }), ` charges a game (${range(charges.per_game, plain(2))}): ${number(first)} by the first seat, ${number(second)} by the second.`),
    h(
      "ul",
      { class: "bars" },
      ...charges.outcomes.map(({ outcome, count: times, share, utility }) =>
        h(
          "li",
          { class: "bars__row" },
          h("span", { text: OUTCOMES[outcome] ?? readable(outcome) }),
          h("span", { class: "bars__value", "data-figure": outcome, text: share ? percentage(share.value) : "–" }),
          shareBar(share),
          h("span", { class: "bars__note", text: [share ? range(share, percentage) : "", count(times, "time"), utility ? `the charger wins ${signed(utility.value, 2)}` : ""].filter(Boolean).join(" · ") }),
        ),
      ),
    ),
    h(
      "dl",
      { class: "responses__means" },
      ...[
        pair("Charged", charges.charged),
        pair("Paid in cash", charges.paid_in_cash),
        pair("Paid in property", charges.paid_in_property),
        pair("Paid too much", charges.overpaid),
        pair("Answers", charges.cards),
      ],
    ),
    h("p", { class: "hint", text: "Means of a charge." }),
  ];
}

/** @param {string} term @param {Estimate|null} estimate */
function pair(term, estimate) {
  return h("div", {}, h("dt", { text: term }), h("dd", { title: estimate ? range(estimate, plain(2)) : "", text: number(estimate?.value, 2) }));
}

/** A bar with its interval on it. @param {Estimate|null} share */
function shareBar(share) {
  const drawn = bar(share?.value ?? 0);
  if (!share) return drawn;
  drawn.append(h("b", { style: { "--low": share.low, "--high": share.high } }));
  return drawn;
}

/** @param {Choice[]} choices */
function choiceFigures(choices) {
  const groups = [
    { title: "First answers", those: choices.filter(({ first }) => first) },
    { title: "Later answers", those: choices.filter(({ first }) => !first) },
  ].filter(({ those }) => those.length);
  if (!groups.length) return [h("p", { class: "hint", text: "There was never a choice." })];
  return [
    h("p", { class: "hint", text: "Where there was a choice between these kinds of answers and no others." }),
    ...groups.map(({ title, those }) => h("div", { class: "responses__choices" }, h("h4", { text: title }), h("ul", {}, ...those.map(choiceRow)))),
  ];
}

/** @param {Choice} choice */
function choiceRow({ times, chosen }) {
  const kinds = Object.entries(chosen);
  return h(
    "li",
    { class: "choice-row" },
    h("span", { class: "stack", "aria-hidden": "true" }, ...kinds.filter(([, of]) => of).map(([kind, of]) => h("i", { "data-kind": kind, style: { "--share": of / times } }))),
    h("span", { class: "choice-row__kinds" }, ...kinds.map(([kind, of]) => h("span", {}, h("i", { class: "key", "data-kind": kind, "aria-hidden": "true" }), `${readable(kind)} `, h("strong", { text: percent(of / times) })))),
    h("span", { class: "choice-row__times", text: count(times, "time") }),
  );
}

/** @param {Role} initiator @param {Role} responder */
function roleTable(initiator, responder) {
  const both = [initiator, responder];
  /** @param {string} name @param {string} field @param {number} digits @param {number} [most] */
  const compared = (name, field, digits, most = Math.max(1e-12, ...both.map((role) => role[field] ?? 0))) => row(name, both.map((role) => cell(number(role[field], digits), role[field] === null ? null : bar(role[field] / most))));
  return h(
    "table",
    { class: "numbers" },
    h("thead", {}, h("tr", {}, h("td"), h("th", { scope: "col" }, "Initiator", h("span", { class: "hint", text: "main play" })), h("th", { scope: "col" }, "Responder", h("span", { class: "hint", text: "answers" })))),
    h(
      "tbody",
      {},
      compared("Regret", "regret_by_reach", 4),
      compared("Positive regret", "positive_regret_by_reach", 4),
      compared("Entropy, in bits", "entropy_by_reach", 3),
      compared("Entropy over the most possible", "evenness_by_reach", 3, 1),
      row("Value of a decision", both.map(({ value }) => cell(value ? signed(value.value, 3) : "–", value ? h("span", { class: "hint", text: range(value, plus(3)) }) : null))),
      row("Decisions a game", both.map(({ decisions }) => cell(number(decisions.value, 2)))),
      row("Part of MER", both.map(({ mer_share }) => cell(number(mer_share, 4)))),
      row("Share of reach", both.map(({ reach }) => cell(percent(reach)))),
      row("Infosets (with a choice)", both.map(({ infosets, choices }) => cell(`${number(infosets)} (${number(choices)})`))),
    ),
  );
}

/** @param {string} name @param {Node[]} cells */
const row = (name, cells) => h("tr", {}, h("th", { scope: "row", text: name }), ...cells);

/** @param {string} text @param {Node|null} [below] */
const cell = (text, below = null) => h("td", {}, h("span", { text }), below);

/** @param {Refusal|null} refusal */
function refusalFigures(refusal) {
  if (!refusal) return [h("p", { class: "hint", text: "The deck of this game has none." })];
  const { right, card, right_wins, card_wins, compared, deals } = refusal;
  const rows = [
    { name: "To be able to refuse", key: "right", estimate: right, wins: right_wins, over: "over a blank card" },
    { name: "The card", key: "card", estimate: card, wins: card_wins, over: "over the random card that it replaces" },
  ];
  const span = spanOf(rows.map(({ estimate }) => estimate));
  return [
    h(
      "ul",
      { class: "bars" },
      ...rows.map(({ name, key, estimate, wins, over }) =>
        h(
          "li",
          { class: "bars__row" },
          h("span", { text: name }),
          h("span", { class: "bars__value", "data-figure": key, text: estimate ? signed(estimate.value, 3) : "–" }),
          estimate ? whisker(estimate, span) : null,
          h("span", { class: "bars__note", text: [over, estimate ? range(estimate, plus(3)) : "", wins ? `${signed(wins.value * 100, 1)} points of the win rate` : ""].filter(Boolean).join(" · ") }),
        ),
      ),
    ),
    h("p", { class: "hint", text: `Utility of a game to who has it in his first hand; ${count(compared, "hand")} of ${count(deals, "deal")} compared. The upright line is zero.` }),
  ];
}

/** @param {Exploitability} found */
function exploitFigures({ method, by_responses: answers, by_main_play: main, whole, samples, games }) {
  const exact = method === "exact";
  const parts = [
    { name: "By answers alone", key: "by_responses", found: answers },
    { name: "By main play alone", key: "by_main_play", found: main },
    { name: "By both", key: "whole", found: whole },
  ];
  const span = spanOf([answers, main, whole]);
  /** Below zero nothing is sure. @param {Estimate} found */
  const bound = (found) => `${found.low > 0 ? "at least " : ""}${signed(found.value, 3)}`;
  /** @param {Estimate} found */
  const note = (found) => `${range(found, plus(3))}${found.low > 0 ? "" : ": too few games to be sure of anything"}`;
  return [
    h(
      "ul",
      { class: "bars" },
      ...parts.map(({ name, key, found }) =>
        h(
          "li",
          { class: "bars__row" },
          h("span", { text: name }),
          h("span", { class: "bars__value", "data-figure": key, text: exact ? number(found.value, 4) : bound(found) }),
          whisker(found, span),
          exact ? null : h("span", { class: "bars__note", text: note(found) }),
        ),
      ),
    ),
    h("p", {
      class: "hint",
      text: exact
        ? "Exploitability: what a best response wins a game, exactly. The first one plays as the agent does and answers as it likes."
        : `Exploitability: what an opponent wins a game that knows the agent and thinks ahead (${number(samples ?? 0)} samples a move, ${count(games ?? 0, "game")} each) where the name says, and else plays as the agent does.`,
    }),
  ];
}

/** The part of the axis that holds the estimates and zero. @param {(Estimate|null)[]} estimates @returns {[number, number]} */
function spanOf(estimates) {
  const ends = estimates.flatMap((one) => (one ? [one.low, one.high] : []));
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const room = (high - low || 1) * 0.06;
  return [low - room, high + room];
}

/** An estimate, its interval and zero on a line. @param {Estimate} estimate @param {[number, number]} span */
function whisker({ value, low, high }, [from, to]) {
  const place = (/** @type {number} */ figure) => (figure - from) / (to - from);
  return h("span", { class: "whisker", "aria-hidden": "true", style: { "--zero": place(0), "--low": place(low), "--high": place(high), "--value": place(value) } }, h("i"), h("b"), h("u"));
}

/** @param {Estimate} estimate @param {(value: number) => string} text */
const range = ({ low, high }, text) => `${text(low)} to ${text(high)}`;

/** @param {number} digits @returns {(value: number) => string} */
const plain = (digits) => (value) => number(value, digits);

/** @param {number} digits @returns {(value: number) => string} */
const plus = (digits) => (value) => signed(value, digits);

/** @param {number} share */
const percentage = (share) => `${number(share * 100, 1)}\u00a0%`;
