/**
 * An infoset in words, by the fields of its description. A field that is zero or empty says nothing:
 * either it is so for every infoset of the abstraction, or there is nothing of it here.
 *
 * @typedef {import("./policy.js").Infoset} Infoset
 */

import { COLOURS } from "./play/deal_facts.js";
import { percent, readable } from "./ui.js";

// Told otherwise: actions by their own list, the key as the identifier.
const UNSAID = new Set(["actions", "key"]);
const SHORT = 8; // characters of a value that goes into the title
const BANKS = ["empty", "up to 2", "up to 6", "over 6"]; // as an abstraction counts them

/** What can be done in Monopoly Deal, as short as a title wants it. @type {Record<string, string>} */
const INTENTS = {
  START_NEW_PROPERTY_SET: "start a set",
  ADD_TO_PROPERTY_SET: "add to a set",
  COMPLETE_PROPERTY_SET: "complete a set",
  ATTEMPT_COLLECT_RENT: "rent",
  JUST_SAY_NO: "say no",
  GIVE_OPPONENT_CASH: "give cash",
  GIVE_OPPONENT_PROPERTY: "give property",
};

/** Fields whose numbers stand for something. @type {Record<string, (value: any) => string>} */
const WORDS = { own_sets: sets, opponent_sets: sets, own_bank: (value) => BANKS[value], opponent_bank: (value) => BANKS[value] };

/**
 * Where it is, what else is known there, and what is done there.
 * @param {Infoset} infoset
 * @returns {{title: string, facts: {name: string, value: string}[], text: string}}
 */
export function describe({ description, actions, identifier }) {
  const said = Object.entries(description).filter(([name, value]) => !UNSAID.has(name) && says(name, value));
  const short = said.filter(([name, value]) => isPlace(name) || (typeof value === "string" && value.length <= SHORT));
  const where = short.map(([name, value]) => place(name, value)).join(", ") || `Infoset ${identifier.replace(/^0+(?=.)/, "")}`;
  return {
    // Where the choice itself is what is known, places that differ in nothing else must not look the same.
    title: "actions" in description ? `${where}: ${actions.map(({ name }) => INTENTS[name] ?? readable(name).toLowerCase()).join(", ")}` : where,
    facts: said.filter((field) => !short.includes(field)).map(([name, value]) => ({ name: readable(name), value: told(name, value) })),
    text: actions.map(({ name, average }) => `${readable(name)} ${percent(average)}`).join(" · "),
  };
}

/**
 * What one might search for, by an infoset that there is.
 * @param {Infoset} infoset
 */
export function examples({ description, actions, identifier }) {
  const field = Object.entries(description).findLast(([name, value]) => !UNSAID.has(name) && !Array.isArray(value) && says(name, value));
  return [readable(actions[0].name).toLowerCase(), field ? `${field[0]}=${field[1]}` : null, identifier.replace(/^0+(?=.)/, "").slice(0, SHORT)].filter(Boolean).join(", ");
}

/** Seat 0 and play 0 are places like any other. @param {string} name */
const isPlace = (name) => name === "player" || name === "streak_index";

/** @param {string} name @param {any} value */
function says(name, value) {
  if (isPlace(name)) return true;
  return Array.isArray(value) ? value.some(Boolean) : Boolean(value);
}

/** @param {string} name @param {any} value */
function place(name, value) {
  if (name === "player") return `Seat ${value}`;
  if (name === "streak_index") return `play ${value + 1}`;
  return `${readable(name).toLowerCase()} ${value}`;
}

/** @param {string} name @param {any} value */
function told(name, value) {
  if (WORDS[name]) return WORDS[name](value);
  if (value === true) return "yes";
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** @param {number[]} owned properties by colour */
function sets(owned) {
  return COLOURS.map((colour, k) => ({ colour, n: owned[k] })).filter(({ n }) => n > 0).map(({ colour, n }) => `${n} ${colour}`).join(", ");
}
