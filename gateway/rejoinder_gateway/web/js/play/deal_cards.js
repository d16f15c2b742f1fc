/** Monopoly Deal's cards as elements. */

import { cardName } from "./deal_events.js";
import { capital, rent, RENT, worth } from "./deal_facts.js";
import { h, readable } from "../ui.js";

/** What playing a card means, in the words of the table. @type {Record<string, string>} */
const MEANINGS = {
  START_NEW_PROPERTY_SET: "Starts a set",
  ADD_TO_PROPERTY_SET: "Adds to a set",
  COMPLETE_PROPERTY_SET: "Completes the set",
  CASH: "To the bank",
  JUST_SAY_NO: "Ends the payment",
  OTHER: "Charges nothing",
};

/**
 * A card of the hand: a button if it can be played now.
 * @param {string} name
 * @param {number} held copies
 * @param {{piles: import("./deal_facts.js").Piles, move: {name: string, meanings: Record<string, string>}|null, arrives: boolean, onMove: ((move: string) => void)|null}} given
 */
export function card(name, held, { piles, move, arrives, onMove }) {
  const [kind, what] = name.split(" ");
  const owned = piles.properties[what] ?? 0;
  const hint = move ? meaning(kind, what, owned, move.meanings.intent) : "";
  const spoken = `${title(name)}${held > 1 ? `, ${held} copies` : ""}${hint ? `. ${hint}` : ""}`;
  return h(
    "button",
    {
      class: `card card--${kindClass(name)}${held > 1 ? " card--stack" : ""}${arrives ? " arrives" : ""}`,
      type: "button",
      "data-colour": kind === "property" || kind === "rent" ? what : null,
      "data-key": `hand.${name}`,
      "data-move": move ? name : null,
      disabled: !move,
      "aria-label": spoken,
      onclick: () => onMove?.(name),
    },
    h("span", { class: "card__band" }),
    ...face(kind, what),
    h("span", { class: "card__hint", text: hint }),
    held > 1 ? h("span", { class: "card__held", text: `×${held}` }) : null,
  );
}

/**
 * A small card, as it lies in a bank: a button if it can be given now.
 * @param {string} name
 * @param {number} held
 * @param {{arrives?: boolean, move?: string|null, onMove?: ((move: string) => void)|null}} given
 */
export function miniCard(name, held, { arrives = false, move = null, onMove = null }) {
  const [kind, what] = name.split(" ");
  const value = kind === "property" || kind === "cash" ? worth(name) : null;
  const inside = [
    h("span", { class: "mini__band" }),
    h("span", { class: "mini__value", text: value ?? (kind === "rent" ? "Rent" : "Just Say No") }),
    kind === "just" ? null : h("span", { class: "mini__name", text: kind === "cash" ? "cash" : what }),
    held > 1 ? h("span", { class: "card__held", text: `×${held}` }) : null,
  ];
  const look = {
    class: `mini mini--${kindClass(name)}${arrives ? " arrives" : ""}`,
    "data-colour": kind === "property" || kind === "rent" ? what : null,
  };
  const copies = held > 1 ? `, ${held} copies` : "";
  if (!move) return h("div", look, h("span", { class: "visually-hidden", text: `${title(name)}${copies}` }), ...inside.map(unspoken));
  return h(
    "button",
    { ...look, type: "button", "data-key": move, "data-move": move, "aria-label": `Give ${cardName(name)} from your bank, worth ${value}${copies}`, onclick: () => onMove?.(move) },
    ...inside,
  );
}

/** @param {number} size */
export function cardBacks(size) {
  return Array.from({ length: Math.min(size, 8) }, () => h("span", { class: "back", "aria-hidden": "true" }));
}

/** @param {string} kind @param {string} what */
function face(kind, what) {
  const part = (/** @type {string} */ name, /** @type {string|number} */ text) => h("span", { class: `card__${name}`, text });
  if (kind === "property") return [part("name", capital(what)), part("kind", "Property"), part("facts", `Rent ${RENT[what].slice(1).join(" · ")}`)];
  if (kind === "cash") return [part("figure", what), part("kind", "Cash")];
  if (kind === "rent") return [part("name", "Rent"), part("kind", capital(what)), part("facts", RENT[what].slice(1).join(" · "))];
  return [part("no", "Just Say No"), part("kind", "Answer")];
}

/** @param {string} kind @param {string} what @param {number} owned @param {string} [intent] */
function meaning(kind, what, owned, intent) {
  if (kind === "rent" && owned) return `Charges ${rent(what, owned)}`;
  if (kind === "property" && intent === "CASH") return "Only to pay with";
  return intent ? (MEANINGS[intent] ?? readable(intent)) : "";
}

/** @param {string} name */
function title(name) {
  const [kind, what] = name.split(" ");
  if (kind === "property") return `${capital(what)} property, worth ${worth(name)}`;
  if (kind === "rent") return `Rent for ${what}`;
  return kind === "cash" ? `Cash ${what}` : "Just Say No";
}

/** @param {string} name */
const kindClass = (name) => (name === "just say no" ? "no" : name.split(" ")[0]);

/** @param {HTMLElement|null} element */
function unspoken(element) {
  element?.setAttribute("aria-hidden", "true");
  return element;
}
