/** The gateway's API. Paths and shapes are those of its OpenAPI document. */

import { lose, lost, reachable } from "./connection.js";

const API = "/api/v1";
const PATIENCE = 10_000; // milliseconds without an answer until the gateway is asked for a sign of life
const LONGEST = 120_000; // a gateway that is alive may be slow: a new one compiles its kernels first
const UNKNOWN_INFOSET = "urn:rejoinder:problem:unknown-infoset";

/** A problem that the gateway answered with. */
export class ApiError extends Error {
  /** @param {{title?: string, detail?: string, status: number, [extra: string]: any}} problem */
  constructor(problem) {
    super(problem.detail ?? `The gateway answered ${problem.status}.`);
    this.title = problem.title ?? "The gateway refused";
    this.status = problem.status;
    this.problem = problem;
  }
}

/** The gateway could not be reached, or did not answer. */
export class ConnectionLost extends Error {
  constructor() {
    super("The gateway does not answer. Try again once the connection is back.");
    this.title = "No connection";
  }
}

/**
 * @param {string} path under the API
 * @param {{method?: string, body?: unknown, secret?: string}} [given]
 * @returns {Promise<any>}
 */
export async function request(path, { method = "GET", body, secret } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (secret) headers.Authorization = `Bearer ${secret}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const patience = new Patience();
  let response;
  let text;
  try {
    response = await fetch(API + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: patience.signal });
    text = await response.text();
  } catch {
    lose();
    throw new ConnectionLost();
  } finally {
    patience.end();
  }
  if (response.ok) return JSON.parse(text);
  throw new ApiError({ ...problemIn(text), status: response.status });
}

/** Gives a request up when nothing comes and the gateway gives no sign of life either. */
class Patience {
  constructor() {
    this.began = Date.now();
    this.controller = new AbortController();
    this.signal = this.controller.signal;
    this.wait();
  }

  wait() {
    this.timer = setTimeout(async () => {
      const alive = Date.now() - this.began < LONGEST && (await reachable());
      if (this.timer === 0) return; // answered meanwhile
      if (alive) this.wait();
      else this.controller.abort();
    }, PATIENCE);
  }

  end() {
    clearTimeout(this.timer);
    this.timer = 0;
  }
}

/** @param {string} text */
function problemIn(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {}; // a proxy's own words
  }
}

/**
 * As `request`, again and again until the gateway has answered. Only for what may be asked twice:
 * reading, and moves, which carry their number.
 * @param {string} path
 * @param {{method?: string, body?: unknown, secret?: string}} [given]
 */
export async function insist(path, given) {
  for (;;) {
    try {
      return await request(path, given);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      if (lost()) await lose();
    }
  }
}

/** @param {Record<string, string|number|null|undefined>} given */
export function query(given) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== null && value !== undefined && value !== "") parts.set(name, String(value));
  }
  const text = parts.toString();
  return text ? `?${text}` : "";
}

/** @param {string} part of a path */
const segment = (part) => encodeURIComponent(part);

/** How much of everything anybody may have. @returns {Promise<Record<string, number>>} */
export const limits = async () => (await insist("/")).limits;
export const catalogue = () => insist("/games-catalogue");
export const runs = async () => (await insist("/runs")).runs;
/** @param {string} name */
export const run = (name) => insist(`/runs/${segment(name)}`);
/** @param {string} name */
export const runHistory = async (name) => (await insist(`/runs/${segment(name)}/history`)).records;
/** @param {string} name @param {{what: string, target: number}} target */
export const forecast = (name, target) => insist(`/runs/${segment(name)}/forecast${query(target)}`);
/** Of the newest snapshot; whoever asks first waits some seconds. @param {string} name */
export const responses = (name) => insist(`/runs/${segment(name)}/responses`);
/** @param {string} name @param {Record<string, any>} given */
export const infosets = (name, given) => insist(`/runs/${segment(name)}/policy${query(given)}`);
/**
 * One infoset, or null where the snapshot has not met it.
 * @param {string} name
 * @param {string} identifier
 * @param {Record<string, any>} given
 */
export async function infoset(name, identifier, given) {
  try {
    return await insist(`/runs/${segment(name)}/policy/${segment(identifier)}${query(given)}`);
  } catch (error) {
    if (error instanceof ApiError && error.problem.type === UNKNOWN_INFOSET) return null; // other 404s are of runs and snapshots
    throw error;
  }
}
/** @param {string} name */
export const runEvents = async (name) => `${API}/runs/${segment(name)}/events`;

/** @param {unknown} wanted */
export const createGame = (wanted) => request("/games", { method: "POST", body: wanted });

/**
 * What the holder of a game's secret may do with it.
 * @param {string} id
 * @param {string} secret
 */
export function gameApi(id, secret) {
  const path = `/games/${segment(id)}`;
  return {
    state: () => insist(path, { secret }),
    /** @param {number} moveNumber @param {string} move */
    move: (moveNumber, move) => insist(`${path}/moves`, { method: "POST", secret, body: { move_number: moveNumber, move } }),
    advice: () => insist(`${path}/advice`, { secret }),
    decisions: async () => (await insist(`${path}/decisions`, { secret })).decisions,
    history: async () => (await insist(`${path}/history`, { secret })).events,
    replay: async () => (await insist(`${path}/replay`, { secret })).steps,
    resign: () => insist(`${path}/resign`, { method: "POST", secret }),
    /** The address of its event stream, good for one minute and one use. */
    events: async () => `${API}${path}/events${query({ ticket: (await request(`${path}/ticket`, { method: "POST", secret })).ticket })}`,
  };
}
