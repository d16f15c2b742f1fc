/**
 * What this browser remembers: its games with their secrets, and settings. What cannot be stored is
 * kept for as long as the page stays open.
 *
 * A game without its secret is lost, so unfinished ones stay until the gateway does not know them any
 * more; of the finished ones the last few.
 *
 * @typedef {{secret: string, wanted: unknown, game: string, title: string, opponent: string, begun: string, ended?: string, outcome: string|null}} KnownGame
 */

const PREFIX = "rejoinder.";
const MOST_FINISHED = 50;
const memory = new Map(); // what could not be stored; the rest is read anew, since other tabs write too

/** @param {string} name @param {any} fallback */
export function remembered(name, fallback) {
  if (memory.has(name)) return memory.get(name);
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

/** @param {string} name @param {any} value */
export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
    memory.delete(name);
  } catch {
    memory.set(name, value);
  }
}

/** Whether the games are still known when this page is closed. */
export const gamesAreStored = () => !memory.has("games");

/** @returns {Record<string, KnownGame>} the one that was begun last is first */
export const games = () => remembered("games", {});

/** Of a game that is not known only its secret makes it known. @param {string} id @param {Partial<KnownGame>} facts */
export function rememberGame(id, facts) {
  const known = games();
  if (!known[id]?.secret && !facts.secret) return;
  const ended = facts.outcome && !known[id]?.outcome ? { ended: new Date().toISOString() } : {};
  known[id] = { ...known[id], ...ended, ...facts };
  const whole = Object.entries(known).filter(([, { secret, begun }]) => secret && begun);
  const finished = whole.filter(([, { outcome }]) => outcome).sort(newest(({ ended, begun }) => ended ?? begun));
  const dropped = new Set(finished.slice(MOST_FINISHED).map(([other]) => other));
  remember("games", Object.fromEntries(whole.filter(([other]) => !dropped.has(other)).sort(newest(({ begun }) => begun))));
}

/** @param {string} id */
export function forgetGame(id) {
  const known = games();
  delete known[id];
  remember("games", known);
}

/**
 * @param {(game: KnownGame) => string} time
 * @returns {(a: [string, KnownGame], b: [string, KnownGame]) => number}
 */
const newest = (time) => ([, a], [, b]) => time(b).localeCompare(time(a));
