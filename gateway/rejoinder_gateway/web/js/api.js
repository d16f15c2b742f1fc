/** The gateway's API. Paths and shapes are those of its OpenAPI document. */

import { lose, lost } from "./connection.js";

const API = "/api/v1";

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

/** The gateway could not be reached. */
export class ConnectionLost extends Error {
  constructor() {
    super("The gateway cannot be reached. The page tries again by itself.");
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
  let response;
  let text;
  try {
    response = await fetch(API + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    text = await response.text();
  } catch {
    lose();
    throw new ConnectionLost();
  }
  if (response.ok) return JSON.parse(text);
  throw new ApiError({ ...problemIn(text), status: response.status });
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

export const catalogue = () => insist("/games-catalogue");
export const runs = async () => (await insist("/runs")).runs;
/** @param {string} name */
export const run = (name) => insist(`/runs/${segment(name)}`);
/** @param {string} name */
export const runHistory = async (name) => (await insist(`/runs/${segment(name)}/history`)).records;
/** @param {string} name @param {Record<string, any>} given */
export const infosets = (name, given) => insist(`/runs/${segment(name)}/policy${query(given)}`);
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
