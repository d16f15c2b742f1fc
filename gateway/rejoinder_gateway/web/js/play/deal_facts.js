/**
 * Monopoly Deal's cards, as the table shows them. A test holds these against the engine's own.
 *
 * @typedef {{properties: Record<string, number>, complete_sets: string[], bank: Record<string, number>, bank_value: number, hand_size: number}} Piles
 * @typedef {{initiator: number, responder: number, action: string, owed: number, paid: number, responses: string[], property_doubled: boolean, settled?: boolean}} Response
 * @typedef {{player: number, hand: Record<string, number>, own: Piles, opponent: Piles, discard: Record<string, number>,
 *   deck_size: number, turn: number, streak_player: number, streak_index: number, to_move: number|null,
 *   response: Response|null, over: boolean, winner: number|null, sets_needed: number, response_rule: string}} DealView
 */

export const COLOURS = ["brown", "green", "pink"];
/** @type {Record<string, number>} */
export const SET_SIZE = { brown: 2, green: 3, pink: 3 };
/** By properties owned. @type {Record<string, number[]>} */
export const RENT = { brown: [0, 1, 2], green: [0, 2, 4, 7], pink: [0, 1, 2, 4] };
/** @type {Record<string, number>} */
const PROPERTY_WORTH = { brown: 1, green: 4, pink: 2 };

/**
 * What a card in a bank is worth: `cash 3`, `property green`.
 * @param {string} card
 */
export function worth(card) {
  const [kind, what] = card.split(" ");
  return kind === "cash" ? Number(what) : (PROPERTY_WORTH[what] ?? 0);
}

/**
 * What a rent card charges with so many properties.
 * @param {string} colour
 * @param {number} owned
 */
export function rent(colour, owned) {
  return RENT[colour][Math.min(owned, SET_SIZE[colour])];
}

/**
 * What a giving move hands over (`give bank cash 3`, `give property green`), as a card.
 * @param {string} move
 * @returns {{from: "bank"|"properties", card: string}|null}
 */
export function given(move) {
  if (move.startsWith("give bank ")) return { from: "bank", card: move.slice("give bank ".length) };
  if (move.startsWith("give property ")) return { from: "properties", card: move.slice("give ".length) };
  return null;
}

/**
 * What a card that is given now counts towards the debt.
 * @param {Response|null} response
 * @param {"bank"|"properties"} from
 * @param {string} card
 */
export function counts(response, from, card) {
  return worth(card) * (response?.property_doubled && from === "properties" ? 2 : 1);
}

/** `green`, `Green`. @param {string} word */
export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);
