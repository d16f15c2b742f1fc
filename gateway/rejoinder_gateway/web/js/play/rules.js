/** The rules of a game, with the numbers of its configuration. */

import { capital, COLOURS, RENT, SET_SIZE, worth } from "./deal_facts.js";
import { count, h, readable } from "../ui.js";

/** For games that have no table of their own. @type {Record<string, string[]>} */
const SHORT_RULES = {
  kuhn: [
    "Three cards: J, Q, K. Each player puts in 1 and gets one card.",
    "The first player passes or bets 1. After a bet the other bets as well, which calls it, or passes, which gives up. After a pass the other may bet too.",
    "If nobody gave up the higher card wins what was put in.",
  ],
  leduc: [
    "Six cards: two each of J, Q, K. Each player puts in 1 and gets one card.",
    "In the first round a raise is 2. Then the public card is turned up, for both, and in the second round a raise is 4. There are two raises a round at most.",
    "Call puts in what the other has put in; if that is nothing more, it lets the turn go by. Fold gives up.",
    "A pair with the public card wins, else the higher card; with equal cards nobody wins anything.",
  ],
};

/** @param {{game: string, title: string, rules: Record<string, any>}} game */
export function rulesText({ game, title, rules }) {
  if (game === "deal") return dealRules(rules);
  const fields = Object.entries(rules);
  return h(
    "div",
    { class: "rules" },
    h("h3", { text: title }),
    ...(SHORT_RULES[game] ?? ["All moves that the rules allow now are offered as buttons."]).map((text) => h("p", { text })),
    ...fields.map(([name, value]) => h("p", {}, h("strong", { text: `${readable(name)}: ` }), String(value))),
  );
}

/** @param {Record<string, any>} rules */
function dealRules(rules) {
  const rent = rules.rent_copies.some((/** @type {number} */ n) => n > 0);
  /** @type {[string, string|null][]} */
  const parts = [
    ["Goal", `Be the first to own ${count(rules.sets_needed, "complete set")}. A colour counts once.`],
    ["Your turn", `Draw ${rules.draw} cards (with an empty hand ${rules.hand_size}), then make up to ${count(rules.streak, "play")} from your hand: a property, cash to the bank, or rent. Pass ends the turn.`],
    ["Rent", rent ? "A rent card charges the other player by how many properties of its colour you own. With none it charges nothing." : null],
    ["You owe", rent ? "Give cards from your bank or properties, one at a time, until the amount is paid. No change is given. They go to the other player's bank and stay there, properties too. Cards in the hand cannot be given. With nothing left to give you yield." : null],
    ["Order", rent && rules.response === "ordered" ? "A property given as the first card counts double. Every later card counts its worth." : null],
    ["Just Say No", rules.just_say_no ? "Ends the payment at once, at any point of it. What was given stays given. It cannot be answered." : null],
    ["A draw", `When deck and hands are empty, or after ${rules.turn_cap} plays.`],
  ];
  return h(
    "div",
    { class: "rules" },
    h(
      "table",
      { class: "rules__table" },
      h("caption", { class: "visually-hidden", text: "Property sets" }),
      h("thead", {}, h("tr", {}, ...["Set", "Properties", "Rent", "Worth"].map((text) => h("th", { scope: "col", text })))),
      h(
        "tbody",
        {},
        ...COLOURS.map((colour) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("span", { class: "swatch", "data-colour": colour }), capital(colour)),
            h("td", { text: SET_SIZE[colour] }),
            h("td", { text: RENT[colour].slice(1).join(", ") }),
            h("td", { text: worth(`property ${colour}`) }),
          ),
        ),
      ),
    ),
    ...parts.filter(([, text]) => text).map(([name, text]) => h("section", {}, h("h3", { text: name }), h("p", { text: String(text) }))),
  );
}
