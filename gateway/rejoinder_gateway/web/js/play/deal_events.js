/**
 * What an event does to the table, so that the agent's replies, which the gateway plays at once, can
 * be shown one after the other; and how it is told. The gateway's own view replaces the result once
 * the last event has been shown.
 *
 * @typedef {{number: number, actor: number|null, name: string, text: string}} Event
 * @typedef {import("./deal_facts.js").DealView} DealView
 */

import { counts, given, rent, SET_SIZE, worth } from "./deal_facts.js";

/**
 * The view after an event, and the places on the table that it touched.
 * @param {DealView} before
 * @param {Event} event
 * @param {number} seat
 * @returns {{view: DealView, touched: string[]}}
 */
export function after(before, event, seat) {
  const view = structuredClone(before);
  view.to_move = null;
  if (view.response?.settled) view.response = null;
  if (event.actor === null) return { view, touched: [draw(view, event.name)] };
  const side = event.actor === seat ? "own" : "opponent";
  const other = side === "own" ? "opponent" : "own";
  const gift = given(event.name);
  if (gift) return { view, touched: give(view, side, other, gift.from, gift.card) };
  if (event.name === "pass") return { view, touched: [] };
  if (event.name === "yield") {
    if (view.response) view.response.settled = true;
    return { view, touched: [] };
  }
  return { view, touched: play(view, side, event.name, event.actor) };
}

/**
 * An event in words. With the view before it the amounts are told too.
 * @param {Event} event
 * @param {number} seat
 * @param {DealView} [before]
 */
export function tell(event, seat, before) {
  const mine = event.actor === seat;
  const who = mine ? "You" : "The agent";
  /** @param {string} verb @param {string} [third] */
  const does = (verb, third = `${verb}s`) => `${who} ${mine ? verb : third}`;
  const [kind, colour] = event.name.split(" ");
  const gift = given(event.name);
  if (event.actor === null) return event.name === "hidden" ? "The agent draws a card" : `You draw ${cardName(event.name)}`;
  if (gift) return `${does("give")} ${giftWords(gift, before?.response ?? null)}`;
  if (event.name === "just say no") return `${does("answer")}: Just Say No`;
  if (event.name === "yield") return `${does("have", "has")} nothing left to give`;
  if (event.name === "pass") return does("pass", "passes");
  if (kind === "property") return `${does("play")} a ${colour} property`;
  if (kind === "cash") return `${does("bank")} ${event.name}`;
  if (!before) return `${does("charge")} ${colour} rent`;
  const amount = rent(colour, before[mine ? "own" : "opponent"].properties[colour] ?? 0);
  if (amount === 0) return `${does("discard")} ${colour} rent: it charges nothing`;
  return `${does("charge")} ${colour} rent: ${mine ? "the agent owes" : "you owe"} ${amount}`;
}

/**
 * Events in words, a draw of several cards as one.
 * @param {Event[]} events
 * @param {number} seat
 * @returns {{text: string, actor: number|null, last: number}[]}
 */
export function story(events, seat) {
  /** @type {{text: string, actor: number|null, last: number}[]} */
  const told = [];
  for (const beat of beats(events)) {
    const [event] = beat;
    const last = beat[beat.length - 1].number;
    if (event.actor !== null) told.push({ text: tell(event, seat), actor: event.actor, last });
    else if (event.name === "hidden") told.push({ text: `The agent draws ${beat.length === 1 ? "a card" : `${beat.length} cards`}`, actor: null, last });
    else told.push({ text: `You draw ${beat.map(({ name }) => cardName(name)).join(", ")}`, actor: null, last });
  }
  return told;
}

/**
 * Events that are shown at once: cards that one player draws one after the other.
 * @param {Event[]} events
 * @returns {Event[][]}
 */
export function beats(events) {
  /** @type {Event[][]} */
  const grouped = [];
  for (const event of events) {
    const last = grouped.at(-1)?.[0];
    const joins = last && event.actor === null && last.actor === null && (last.name === "hidden") === (event.name === "hidden");
    if (joins) grouped.at(-1)?.push(event);
    else grouped.push([event]);
  }
  return grouped;
}

/** A card is drawn. @param {DealView} view @param {string} name */
function draw(view, name) {
  view.deck_size -= 1;
  if (name === "hidden") {
    view.opponent.hand_size += 1;
    return "opponent.hand";
  }
  view.own.hand_size += 1;
  change(view.hand, name, 1);
  return `own.hand.${name}`;
}

/**
 * A card is played from the hand.
 * @param {DealView} view
 * @param {"own"|"opponent"} side
 * @param {string} card
 * @param {number} actor
 */
function play(view, side, card, actor) {
  const piles = view[side];
  const [kind, colour] = card.split(" ");
  piles.hand_size -= 1;
  if (side === "own") change(view.hand, card, -1);
  if (kind === "property") {
    change(piles.properties, colour, 1);
    countSets(piles);
    return [`${side}.set.${colour}`];
  }
  if (kind === "cash") {
    change(piles.bank, card, 1);
    piles.bank_value += worth(card);
    return [`${side}.bank.${card}`];
  }
  change(view.discard, card, 1);
  if (kind === "rent") {
    const owed = rent(colour, piles.properties[colour] ?? 0);
    if (owed > 0) view.response = { initiator: actor, responder: 1 - actor, action: card, owed, paid: 0, responses: [], property_doubled: view.response_rule === "ordered" };
  } else if (view.response) {
    view.response.responses.push(card);
    view.response.settled = true;
  }
  return ["discard"];
}

/**
 * A card is given in a response phase; whatever it is, it goes to the other's bank.
 * @param {DealView} view
 * @param {"own"|"opponent"} giver
 * @param {"own"|"opponent"} receiver
 * @param {"bank"|"properties"} from
 * @param {string} card
 */
function give(view, giver, receiver, from, card) {
  const value = worth(card);
  if (from === "bank") {
    change(view[giver].bank, card, -1);
    view[giver].bank_value -= value;
  } else {
    change(view[giver].properties, card.split(" ")[1], -1);
    countSets(view[giver]);
  }
  change(view[receiver].bank, card, 1);
  view[receiver].bank_value += value;
  if (view.response) {
    view.response.paid += counts(view.response, from, card);
    view.response.property_doubled = false;
    view.response.responses.push(`give ${from === "bank" ? "bank " : ""}${card}`);
    view.response.settled = view.response.paid >= view.response.owed;
  }
  return [`${receiver}.bank.${card}`];
}

/** @param {import("./deal_facts.js").Piles} piles */
function countSets(piles) {
  piles.complete_sets = Object.keys(SET_SIZE).filter((colour) => (piles.properties[colour] ?? 0) >= SET_SIZE[colour]);
}

/** @param {Record<string, number>} pile @param {string} card @param {number} by */
function change(pile, card, by) {
  pile[card] = (pile[card] ?? 0) + by;
  if (pile[card] <= 0) delete pile[card];
}

/**
 * @param {{from: "bank"|"properties", card: string}} gift
 * @param {import("./deal_facts.js").Response|null} response before it
 */
function giftWords({ from, card }, response) {
  if (card.startsWith("cash")) return `${card} from the bank`;
  const counted = counts(response, from, card);
  return `a ${cardName(card)}${from === "bank" ? " from the bank" : ""}, worth ${worth(card)}${counted === worth(card) ? "" : `, counts ${counted}`}`;
}

/** `property green` is `green property`, as the table calls it. @param {string} card */
export function cardName(card) {
  const [kind, what] = card.split(" ");
  if (kind === "property" || kind === "rent") return `${what} ${kind}`;
  return kind === "just" ? "Just Say No" : card;
}
