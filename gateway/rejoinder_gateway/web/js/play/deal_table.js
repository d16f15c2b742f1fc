/**
 * The table of Monopoly Deal: the agent's side, what is going on, your side, your hand.
 *
 * @typedef {import("./deal_facts.js").DealView} DealView
 * @typedef {import("./deal_facts.js").Piles} Piles
 * @typedef {{number: number, name: string, meanings: Record<string, string>}} Legal
 * @typedef {{
 *   view: DealView, legal: Legal[], touched: string[], streak: number, over?: boolean,
 *   headline: string|null, note: string|null,
 *   onMove: ((move: string) => void)|null, opponentHand?: Record<string, number>|null,
 *   extra?: Node|null,
 * }} Shown
 */

import { card, cardBacks, miniCard } from "./deal_cards.js";
import { cardName } from "./deal_events.js";
import { capital, COLOURS, counts, rent, RENT, SET_SIZE, worth } from "./deal_facts.js";
import { bar, count, h } from "../ui.js";

/** @param {Shown} shown */
export function dealTable(shown) {
  const { view } = shown;
  return h(
    "div",
    { class: `table${shown.onMove ? "" : " table--shown"}` },
    sideOf("opponent", "Agent", shown, shown.opponentHand ? openHand(shown) : closedHand(view.opponent.hand_size, shown.touched)),
    centre(shown),
    sideOf("own", "You", shown, null),
    hand(shown),
  );
}

/**
 * A player's properties and bank.
 * @param {"own"|"opponent"} side
 * @param {string} name
 * @param {Shown} shown
 * @param {Node|null} hidden what is shown of the hand beside the name
 */
function sideOf(side, name, shown, hidden) {
  const piles = shown.view[side];
  const whose = side === "own" ? "Your" : "The agent's";
  const complete = piles.complete_sets.length;
  return h(
    "section",
    { class: `side side--${side}`, "aria-label": side === "own" ? "Your side" : "The agent's side" },
    h(
      "header",
      { class: "side__head" },
      h("h2", { text: name }),
      h("span", { class: complete ? "tag tag--accent" : "tag", text: `${complete} of ${shown.view.sets_needed} sets complete` }),
      hidden,
    ),
    h(
      "div",
      { class: "side__piles" },
      h("ul", { class: "lots", "aria-label": `${whose} properties` }, ...COLOURS.map((colour) => lot(side, colour, piles, shown))),
      bank(side, piles, shown, whose),
    ),
  );
}

/**
 * The properties of one colour, with the way to a complete set.
 * @param {"own"|"opponent"} side
 * @param {string} colour
 * @param {Piles} piles
 * @param {Shown} shown
 */
function lot(side, colour, piles, shown) {
  const owned = piles.properties[colour] ?? 0;
  const size = SET_SIZE[colour];
  const complete = owned >= size;
  const move = side === "own" ? offered(shown, `give property ${colour}`) : null;
  const arrives = shown.touched.includes(`${side}.set.${colour}`);
  const slots = RENT[colour].slice(1).map((amount, k) =>
    h(
      "span",
      { class: `slot${k < owned ? " slot--filled" : ""}${arrives && k === Math.min(owned, size) - 1 ? " arrives" : ""}`, "aria-hidden": "true" },
      h("span", { class: "slot__rent", text: amount }),
    ),
  );
  const surplus = owned - size;
  const property = `property ${colour}`;
  const counted = counts(shown.view.response, "properties", property);
  return h(
    "li",
    { class: `lot${complete ? " lot--complete" : ""}`, "data-colour": colour },
    h(
      "div",
      { class: "lot__head" },
      h("span", { class: "lot__name", text: capital(colour) }),
      h("span", { class: "lot__count", text: `${owned}/${size}` }),
    ),
    h("div", { class: "lot__slots" }, ...slots),
    h("p", {
      class: "lot__foot",
      text: complete ? `Complete${surplus > 0 ? `, ${surplus} more` : ""}` : owned ? `Rent ${rent(colour, owned)}` : "None yet",
    }),
    move
      ? h("button", {
          class: "give",
          type: "button",
          "data-key": move.name,
          "data-move": move.name,
          "aria-label": `Give a ${colour} property, worth ${worth(property)}${counted > worth(property) ? `, counts ${counted}` : ""}${complete && surplus <= 0 ? ". This breaks the set" : ""}`,
          text: `Give · ${counted}`,
          onclick: () => shown.onMove?.(move.name),
        })
      : null,
  );
}

/**
 * @param {"own"|"opponent"} side
 * @param {Piles} piles
 * @param {Shown} shown
 * @param {string} whose
 */
function bank(side, piles, shown, whose) {
  const cards = Object.entries(piles.bank).sort(([a], [b]) => worth(b) - worth(a) || a.localeCompare(b));
  return h(
    "div",
    { class: "bank" },
    h("div", { class: "bank__head" }, h("h3", { text: "Bank" }), h("span", { class: "bank__value", text: piles.bank_value })),
    cards.length
      ? h(
          "ul",
          { class: "bank__cards", "aria-label": `${whose} bank, worth ${piles.bank_value}` },
          ...cards.map(([name, held]) => {
            const move = side === "own" ? offered(shown, `give bank ${name}`) : null;
            return h("li", {}, miniCard(name, held, { arrives: shown.touched.includes(`${side}.bank.${name}`), move: move?.name ?? null, onMove: shown.onMove }));
          }),
        )
      : h("p", { class: "bank__empty", text: "Empty" }),
  );
}

/** What is going on: whose turn it is, or who owes what. @param {Shown} shown */
function centre(shown) {
  const { view } = shown;
  return h(
    "section",
    { class: "centre", "aria-label": "What is going on" },
    view.response && !view.over && !shown.over ? responsePhase(shown) : turn(shown),
    h(
      "dl",
      { class: "decks" },
      h("div", {}, h("dt", { text: "Deck" }), h("dd", { class: view.deck_size ? "" : "is-empty", text: view.deck_size })),
      h(
        "div",
        { class: shown.touched.includes("discard") ? "arrives" : "" },
        h("dt", { text: "Discarded" }),
        h("dd", { text: Object.values(view.discard).reduce((sum, n) => sum + n, 0) }),
      ),
    ),
  );
}

/** @param {Shown} shown */
function turn(shown) {
  const { view } = shown;
  const mine = view.to_move === view.player;
  const pass = offered(shown, "pass");
  return h(
    "div",
    { class: `turn${mine ? " turn--mine" : ""}` },
    h(
      "div",
      { class: "turn__words" },
      h("p", { class: "turn__head", tabindex: "-1", "data-key": "status", text: shown.headline ?? (mine ? "Your turn" : "The agent's turn") }),
      h("p", { class: "turn__note", text: shown.note ?? (mine ? `Play ${view.streak_index + 1} of ${shown.streak}. Choose a card from your hand${pass ? ", or pass" : ""}.` : "") }),
    ),
    h(
      "div",
      { class: "buttons" },
      pass ? h("button", { class: "button", type: "button", "data-key": "pass", "data-move": "pass", onclick: () => shown.onMove?.("pass"), text: "Pass" }) : null,
      shown.extra ?? null,
    ),
  );
}

/** Who owes what, how much is paid, what may be given. @param {Shown} shown */
function responsePhase(shown) {
  const { view } = shown;
  const response = /** @type {import("./deal_facts.js").Response} */ (view.response);
  const mine = response.responder === view.player;
  const left = Math.max(0, response.owed - response.paid);
  const no = offered(shown, "just say no");
  const yields = offered(shown, "yield");
  const asked = mine && view.to_move === view.player;
  const refused = response.responses.at(-1) === "just say no";
  const settled = refused ? "Just Say No" : left ? "Nothing left to give" : "Paid";
  return h(
    "div",
    { class: `response${mine ? " response--mine" : ""}`, "data-response": mine ? "payer" : "initiator" },
    h(
      "div",
      { class: "response__words" },
      h("p", { class: "response__what", text: `${mine ? "The agent charges" : "You charge"} ${cardName(response.action)}` }),
      h("p", { class: "response__head", tabindex: "-1", "data-key": "status", text: response.settled ? settled : `${mine ? "You owe" : "The agent owes you"} ${response.owed}` }),
      h(
        "div",
        { class: "response__paid" },
        bar(response.paid / response.owed),
        h("span", { text: response.settled ? `${response.paid} of ${response.owed} paid` : `${response.paid} paid, ${left} to go` }),
      ),
      h("p", {
        class: "response__note",
        text: asked
          ? yields
            ? "You have nothing that could be given."
            : `Give cards from your bank or properties, one at a time. No change is given.${response.property_doubled ? " A property given now counts double." : ""}`
          : (shown.headline ?? "The agent answers."),
      }),
    ),
    h(
      "div",
      { class: "buttons" },
      no
        ? h("button", { class: "button button--invert", type: "button", "data-key": "say-no", "data-move": "just say no", onclick: () => shown.onMove?.("just say no"), text: "Just Say No" })
        : null,
      yields
        ? h("button", { class: "button button--invert", type: "button", "data-key": "yield", "data-move": "yield", onclick: () => shown.onMove?.("yield"), text: "Yield: nothing to give" })
        : null,
      shown.extra ?? null,
    ),
  );
}

/** @param {Shown} shown */
function hand(shown) {
  const { view } = shown;
  const cards = Object.entries(view.hand);
  return h(
    "section",
    { class: "hand", "aria-label": "Your hand" },
    h("header", { class: "hand__head" }, h("h2", { text: "Your hand" }), h("span", { class: "tag", text: count(view.own.hand_size, "card") })),
    cards.length
      ? h(
          "ul",
          { class: "hand__cards", onkeydown: arrowKeys },
          ...cards.map(([name, held]) => {
            const move = offered(shown, name);
            return h("li", {}, card(name, held, { piles: view.own, move, arrives: shown.touched.includes(`own.hand.${name}`), onMove: shown.onMove }));
          }),
        )
      : h("p", { class: "hand__empty", text: "No cards. With an empty hand you draw a new one at the start of your next turn." }),
  );
}

/** @param {number} size @param {string[]} touched */
function closedHand(size, touched) {
  return h("div", { class: `backs${touched.includes("opponent.hand") ? " arrives" : ""}`, role: "img", "aria-label": `The agent holds ${count(size, "card")}` }, ...cardBacks(size), h("span", { class: "backs__count", "aria-hidden": "true", text: size }));
}

/** The agent's hand once it may be seen. @param {Shown} shown */
function openHand(shown) {
  const cards = Object.entries(shown.opponentHand ?? {});
  return h(
    "div",
    { class: "shown-hand" },
    cards.length ? "Its hand" : "Its hand is empty",
    h("ul", { class: "bank__cards", "aria-label": "The agent's hand" }, ...cards.map(([name, held]) => h("li", {}, miniCard(name, held, {})))),
  );
}

/** @param {Shown} shown @param {string} name */
function offered(shown, name) {
  return shown.onMove ? (shown.legal.find((move) => move.name === name) ?? null) : null;
}

/** Left and right go from card to card. @param {KeyboardEvent} event */
function arrowKeys(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const cards = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll("button:not(:disabled)")];
  const place = cards.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = /** @type {HTMLElement|undefined} */ (cards[(place + step + cards.length) % cards.length]);
  if (place < 0 || !next) return;
  event.preventDefault();
  next.focus();
}
