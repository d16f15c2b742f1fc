/**
 * What this browser remembers: its games with their secrets, and settings. Without storage the
 * page works for as long as it stays open.
 *
 * @typedef {{secret: string, wanted: unknown, game: string, title: string, opponent: string, begun: string, outcome: string|null}} KnownGame
 */

const PREFIX = "rejoinder.";
const MOST_GAMES = 50;
const memory = new Map();

/** @param {string} name @param {any} fallback */
export function remembered(name, fallback) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return memory.get(name) ?? fallback;
  }
}

/** @param {string} name @param {any} value */
export function remember(name, value) {
  memory.set(name, value);
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // kept in memory
  }
}

/** @returns {Record<string, KnownGame>} */
export const games = () => remembered("games", {});

/** @param {string} id @param {Partial<KnownGame>} facts */
export function rememberGame(id, facts) {
  const known = games();
  known[id] = { ...known[id], ...facts };
  const newest = Object.entries(known).sort(([, a], [, b]) => b.begun.localeCompare(a.begun));
  remember("games", Object.fromEntries(newest.slice(0, MOST_GAMES)));
}

/** @param {string} id */
export function forgetGame(id) {
  const known = games();
  delete known[id];
  remember("games", known);
}
