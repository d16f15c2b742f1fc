/** The rules of a game, with the numbers of its configuration. */

import { capital, COLOURS, RENT, SET_SIZE, worth } from "./deal_facts.js";
import { count, h, readable } from "../ui.js";

/** For games that have no table of their own. @type {Record<string, string[]>} */
const SHORT_RULES = {
  kuhn: [
    "Three cards: J, Q, K. Each player puts in 1 and gets one card.",
    "Pass or bet 1. After a bet the other may bet as well, which calls, or pass, which folds.",
    "If nobody folds the higher card wins the pot.",
  ],
  leduc: [
    "Six cards: two each of J, Q, K. Each player puts in 1 and gets one card.",
    "A round of betting by 2, then a card is turned up for both, then a round by 4; two raises a round at most.",
    "A pair with the card that is up wins, else the higher card; equal cards share.",
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
    ["Your turn", `Draw ${rules.draw} cards (with an empty hand ${rules.hand_size}), then play up to ${rules.streak}: a property, cash into your bank, or a rent card. Passing ends it.`],
    ["Rent", rent ? "Charges the other by how many properties of its colour you own. With none it charges nothing." : null],
    ["Owing", rent ? "Whoever owes gives cards from bank or properties, one at a time, until the amount is reached. No change is given. They go to the other's bank and are money from then on, properties too. Cards in the hand cannot be given." : null],
    ["Just Say No", rules.just_say_no ? "Ends a payment at once, at any point of it. What was given stays given. It cannot be answered." : null],
    ["A draw", `When deck and hands are empty, or after ${rules.turn_cap} plays.`],
  ];
  return h(
    "div",
    { class: "rules" },
    h(
      "table",
      { class: "rules__table" },
      h("caption", { class: "visually-hidden", text: "Property sets" }),
      h("thead", {}, h("tr", {}, ...["Set", "Cards", "Rent", "Worth"].map((text) => h("th", { scope: "col", text })))),
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
