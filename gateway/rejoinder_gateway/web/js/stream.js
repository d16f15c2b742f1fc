/**
 * News by an event stream that comes back by itself. While there is no stream to have, the page looks
 * for news every few seconds instead, and asks for a stream again from time to time.
 *
 * A browser has six connections to a gateway (HTTP/1.1), for all its tabs together, and a stream keeps
 * one. So only a few tabs have a stream at a time, each by a lock that the tabs share, and only while
 * they are shown; without such locks (they need HTTPS or loopback) none has. A hidden tab does nothing,
 * and looks for what it has missed once it is shown.
 */

import { lose, reachable } from "./connection.js";

const STREAMS = 4; // of all tabs together
const QUIET = 45_000; // milliseconds without even a ping: the connection is taken for dead
const AGAIN = 1_000; // before a stream that has ended is asked for again
const LOOK = 2_000; // between two looks while there is no stream
const LOOKS = 6; // before a stream that was not to be had is asked for again

/**
 * @param {{
 *   address: () => Promise<string>, handlers: Record<string, (data: any) => void>,
 *   look: () => Promise<void>, over?: () => boolean,
 * }} source its address, asked for before every attempt (a ticket is good for one); what to do with
 *   each event; how to look without it; whether there will be no more news
 * @returns {() => void} ends it
 */
export function follow({ address, handlers, look, over = () => false }) {
  let left = false;
  let close = () => {}; // the stream
  let wake = () => {}; // from a sleep
  const done = () => left || over();

  async function run() {
    while (!done()) {
      const end = hidden() ? "ended" : await listen();
      if (end === "gone" || done()) return;
      if (hidden()) await sleep(Infinity);
      const away = !done() && !(await reachable());
      if (away) await lose();
      const none = end === "none" && !away;
      // What no stream tells, for as long as there is none.
      for (let looks = none ? LOOKS : 1; looks > 0 && !done() && !hidden(); looks -= 1) {
        if (!(await lookOnce())) return;
        await sleep(none ? LOOK : AGAIN);
      }
    }
  }

  /** Until the stream ends. @returns {Promise<"ended"|"none"|"gone">} */
  async function listen() {
    const giveBack = await takeStream();
    if (!giveBack) return "none";
    try {
      const url = await address();
      if (done()) return "gone";
      return hidden() ? "ended" : await hear(url);
    } catch (error) {
      return missing(error) ? "gone" : "none";
    } finally {
      giveBack();
    }
  }

  /** @param {string} url @returns {Promise<"ended"|"none">} */
  function hear(url) {
    return new Promise((resolve) => {
      const source = new EventSource(url);
      let opened = false;
      let watchdog = 0;
      const finish = () => {
        clearTimeout(watchdog);
        source.close();
        resolve(opened || hidden() ? "ended" : "none");
      };
      const alive = () => {
        clearTimeout(watchdog);
        watchdog = setTimeout(finish, QUIET);
      };
      for (const [name, handle] of Object.entries(handlers)) {
        source.addEventListener(name, (event) => {
          alive();
          handle(JSON.parse(event.data));
          if (over()) finish();
        });
      }
      source.addEventListener("open", () => (opened = true));
      source.addEventListener("ping", alive);
      source.addEventListener("error", finish);
      close = finish;
      alive();
    });
  }

  /** @returns {Promise<boolean>} whether there is still something to look at */
  async function lookOnce() {
    try {
      await look();
    } catch (error) {
      return !missing(error); // else the next look may do better
    }
    return true;
  }

  /** Until the time is over, the tab is shown or hidden, or this ends. @param {number} milliseconds */
  function sleep(milliseconds) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const timer = milliseconds === Infinity ? 0 : setTimeout(resolve, milliseconds);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      })
    );
  }

  function visibility() {
    if (hidden()) close();
    wake();
  }

  document.addEventListener("visibilitychange", visibility);
  run().finally(() => document.removeEventListener("visibilitychange", visibility));
  return () => {
    left = true;
    close();
    wake();
  };
}

/** @returns {Promise<(() => void)|null>} what gives it back; null if other tabs have them all */
async function takeStream() {
  for (let k = 0; k < STREAMS; k += 1) {
    const giveBack = await take(`rejoinder.stream.${k}`);
    if (giveBack) return giveBack;
  }
  return null;
}

/** @param {string} name of a lock @returns {Promise<(() => void)|null>} */
function take(name) {
  return new Promise((resolve) => {
    if (!navigator.locks) return resolve(null);
    navigator.locks
      .request(name, { ifAvailable: true }, (lock) => lock && new Promise((giveBack) => resolve(() => giveBack(null))))
      .then(() => resolve(null), () => resolve(null)); // not to be had; else it was resolved before
  });
}

const hidden = () => document.visibilityState === "hidden";

/** @param {unknown} error */
const missing = (error) => /** @type {any} */ (error).status === 404;
