/**
 * Play: one game at a table.
 *
 * A move in order: it is sent with its number (and sent again if the connection was lost, which does
 * nothing twice); the answer has the game after all the agent's replies, and the events up to it; they
 * are shown one after the other at the chosen pace; then the table is what the gateway says it is.
 *
 * @typedef {import("./deal_events.js").Event} Event
 * @typedef {{id: string, game: string, title: string, rules: Record<string, any>, configuration: string|null,
 *   opponent: {name: string, kind: string, run: string|null, snapshot: number|null}, seat: number, open: boolean,
 *   argmax: boolean, search: number, move_number: number, to_move: number|null, your_turn: boolean, over: boolean,
 *   winner: number|null, outcome: string|null, utilities: number[]|null, view: any,
 *   legal: {number: number, name: string, meanings: Record<string, string>}[], events: Event[]}} GameState
 */

import { ApiError, createGame, gameApi } from "../api.js";
import { onRecovery } from "../connection.js";
import { address } from "../router.js";
import { forgetGame, games, gamesAreStored, remember, remembered, rememberGame } from "../store.js";
import { follow } from "../stream.js";
import { announce, count, failure, fill, h, loading, readable, shortTitle, signed, words } from "../ui.js";
import { after, beats, story, tell } from "./deal_events.js";
import { dealTable } from "./deal_table.js";
import { genericTable } from "./generic_table.js";
import { askForGame, confirmResign } from "./new_game.js";
import { Pause, pace, paceControl } from "./pace.js";
import { sidePanel } from "./side.js";
import { unfinishedGames } from "./unfinished.js";

const SLOW = 250; // milliseconds after which a move that is not answered yet is said to be on its way
const OWN_MOVE = 350; // milliseconds: one's own move needs no long look
const REFUSED = [409, 422]; // a move that is answered so was not made
const PEEK = 120; // pixels: what is in sight by less than this is brought into view

/** @type {import("../router.js").View} */
export function playView(main, route) {
  const id = route.argument ?? remembered("current", null);
  const known = id ? games()[id] : null;
  if (!id || !known) {
    main.append(welcome(id !== null && route.argument !== null));
    return () => {};
  }
  const api = gameApi(id, known.secret);
  let left = false;
  /** @type {Seat|null} */
  let seat = null;

  async function begin() {
    fill(main, loading("your game"));
    try {
      const [game, events] = await Promise.all([api.state(), api.history()]);
      if (left) return;
      remember("current", id);
      seat = new Seat(api, game, events);
      seat.take(main);
    } catch (error) {
      if (left) return;
      const gone = error instanceof ApiError && error.status === 404;
      fill(main, gone ? welcome(true) : failure(error, begin));
      if (gone) forgetGame(id);
    }
  }

  begin();
  return () => {
    left = true;
    seat?.leave();
  };
}

/** The player's place at the table of one game. */
class Seat {
  /**
   * @param {ReturnType<typeof gameApi>} api
   * @param {GameState} game
   * @param {Event[]} events all so far
   */
  constructor(api, game, events) {
    this.api = api;
    this.game = game;
    this.events = events;
    /** @type {GameState|null} what the stream told last */
    this.heard = null;
    this.view = game.view;
    this.left = false;
    this.busy = false;
    /** @type {string|null} */
    this.headline = null;
    /** @type {string|null} */
    this.notice = gamesAreStored() ? null : "This browser cannot store the game: it can be gone on with only while this page stays open.";
    this.unsure = false; // whether the last move was made
    /** @type {string[]} */
    this.touched = [];
    /** @type {Record<string, number>|null} */
    this.agentsHand = null;
    this.pause = new Pause();
    this.head = h("div");
    this.table = h("div", { class: "play__table" });
    this.side = sidePanel(api);
    /** @type {(() => void)[]} */
    this.endings = [];
  }

  /** Sit down. @param {HTMLElement} main */
  take(main) {
    fill(main, this.head, h("div", { class: "play", "data-game": this.game.id }, this.table, this.side.element));
    this.settle();
    this.endings.push(
      follow({
        address: this.api.events,
        handlers: { game: (state) => this.hear(state) },
        look: async () => this.hear(await this.api.state()),
        over: () => this.game.over || this.heard?.over === true,
      }),
      onRecovery(() => this.refresh()),
    );
  }

  leave() {
    this.left = true;
    this.pause.skip();
    for (const end of this.endings) end();
  }

  /** @param {string} move */
  async act(move) {
    if (this.busy) return;
    this.notice = null;
    this.unsure = false;
    let answer;
    try {
      answer = await this.send(move);
    } catch (error) {
      return this.findOut(error);
    }
    await this.show(answer);
  }

  /** @param {string} move @returns {Promise<GameState>} */
  async send(move) {
    this.busy = true;
    const slow = setTimeout(() => this.drawTable(), SLOW);
    try {
      return (await this.api.move(this.game.move_number, move)).game;
    } finally {
      clearTimeout(slow);
      this.busy = false;
    }
  }

  /** A move went wrong. Whether it was made, only the game tells. @param {unknown} error */
  async findOut(error) {
    const { detail } = words(error);
    this.unsure = !(error instanceof ApiError && REFUSED.includes(error.status));
    this.notice = `${this.unsure ? "It is not known whether the move was made." : "That move was not made."} ${detail}`;
    this.busy = true;
    this.drawTable();
    const now = await this.api.state().catch(() => null);
    this.busy = false;
    if (!now) {
      this.drawTable(); // it stays unknown; the same move, sent again, is not made twice
      return this.catchUp();
    }
    if (this.unsure) this.notice = `The move has not been made so far. ${detail}`; // unless the game has gone on
    await this.show(now);
  }

  async resign() {
    if (!(await confirmResign())) return;
    try {
      this.hear(await this.api.resign());
    } catch (error) {
      this.notice = words(error).detail;
      this.drawTable();
    }
  }

  /** There is news: the game went on in another tab, perhaps. @param {GameState} state */
  hear(state) {
    this.heard = state;
    this.catchUp();
  }

  /** Show what was heard while something else was being shown. */
  async catchUp() {
    const { heard, game } = this;
    if (heard && (heard.move_number > game.move_number || (heard.over && !game.over))) await this.show(heard);
  }

  async refresh() {
    if (this.busy || this.left) return;
    try {
      await this.show(await this.api.state());
    } catch (error) {
      this.notice = words(error).detail;
      this.drawTable();
    }
  }

  /** Show what has happened since, and then the table as it is. @param {GameState} next */
  async show(next) {
    if (this.busy || this.left) return;
    if (this.unsure && next.move_number > this.game.move_number) this.notice = null;
    this.busy = true;
    this.pause = new Pause();
    try {
      await this.tellNews(next);
    } catch (error) {
      this.notice = `What happened since your move could not be read. ${words(error).detail}`;
    } finally {
      this.busy = false;
    }
    if (this.left) return;
    const ends = next.over && !this.game.over;
    this.game = next;
    this.settle();
    if (ends) this.showResult();
    else this.keepInSight();
    await this.catchUp();
  }

  /** One event after the other. @param {GameState} next */
  async tellNews(next) {
    const seen = this.events.at(-1)?.number ?? 0;
    const missed = next.events[0] && next.events[0].number > seen + 1; // more than the state tells
    const known = missed ? await this.api.history() : next.events;
    const news = known.filter((/** @type {Event} */ e) => e.number > seen);
    if (pace() === 0 || missed) {
      this.events.push(...news);
      announce(this.story(news).join(". "));
      return;
    }
    for (const beat of beats(news)) {
      this.showBeat(beat);
      await this.pause.wait(beat[0].actor === this.game.seat ? Math.min(OWN_MOVE, pace()) : pace());
      if (this.left) return;
    }
  }

  /** @param {Event[]} beat */
  showBeat(beat) {
    const { seat } = this.game;
    this.headline = this.story(beat).join(". ");
    this.touched = [];
    if (this.isDeal()) {
      if (beat.length === 1) this.headline = tell(beat[0], seat, this.view);
      for (const event of beat) {
        const { view, touched } = after(this.view, event, seat);
        this.view = view;
        this.touched.push(...touched);
      }
    }
    this.events.push(...beat);
    announce(this.headline);
    this.drawTable();
    this.drawSide();
  }

  /** The table is what the gateway says, and it is somebody's turn. */
  settle() {
    const { game } = this;
    this.view = game.view;
    this.headline = null;
    this.touched = [];
    this.drawHead();
    this.drawTable();
    this.drawSide();
    const owed = this.isDeal() && game.your_turn && this.view.response;
    if (owed) announce(`You owe ${owed.owed - owed.paid}. Give cards from your bank or properties.${owed.property_doubled ? " A property given now counts double." : ""}`);
    else if (game.your_turn) announce("Your turn");
    else if (game.over) this.end();
  }

  /** The game is over: it can be replayed, and the agent's hand may be seen. */
  async end() {
    const { game } = this;
    announce(ending(game));
    rememberGame(game.id, { outcome: game.outcome });
    if (!this.isDeal() || this.agentsHand) return;
    try {
      this.agentsHand = (await this.api.replay()).at(-1)?.views[1 - game.seat].hand ?? null;
    } catch (error) {
      this.notice = `The agent's hand cannot be shown. ${words(error).detail}`;
    }
    if (!this.left) this.drawTable();
  }

  drawHead() {
    const { game } = this;
    fill(
      this.head,
      h(
        "div",
        { class: "page-head" },
        h(
          "div",
          {},
          h("h1", { text: shortTitle(game.title) }),
          h(
            "p",
            { class: "lede" },
            `Against ${opponentName(game)}`,
            game.search ? `, thinking ahead (${count(game.search, "sample")} a move)` : game.argmax ? ", always its likeliest action" : "",
            game.configuration && game.configuration !== game.game ? ` · ${game.configuration.replace(`${game.game}-`, "")} rules` : "",
            game.open ? " · " : "",
            game.open ? h("span", { class: "tag tag--bad", text: "Open game: the agent's options are shown" }) : "",
          ),
        ),
        h(
          "div",
          { class: "buttons buttons--bottom" },
          paceControl(),
          h("button", { class: "button", type: "button", id: "new-game", onclick: () => startGame(game), text: "New game" }),
          game.over ? null : h("button", { class: "button button--danger", type: "button", id: "resign", onclick: () => this.resign(), text: "Resign" }),
        ),
      ),
    );
  }

  drawTable() {
    const { game } = this;
    const hadFocus = this.table.contains(document.activeElement);
    const playing = game.your_turn && !this.busy;
    const over = game.over && !this.busy;
    const skip =
      this.busy && this.headline
        ? h("button", { class: "button button--small", type: "button", "data-key": "skip", onclick: () => this.pause.skip(), text: "Skip" })
        : null;
    const shown = {
      view: this.busy || over ? { ...this.view, to_move: null } : this.view,
      legal: playing ? game.legal : [],
      onMove: game.over ? null : (/** @type {string} */ move) => void this.act(move),
      extra: skip,
    };
    const place = this.ownPlace()?.getBoundingClientRect().top ?? 0;
    fill(
      this.table,
      this.notice ? h("p", { class: "warning", role: "alert", text: this.notice }) : null,
      over ? this.result() : null,
      this.isDeal()
        ? dealTable({
            ...shown,
            touched: this.touched,
            streak: game.rules.streak,
            over,
            headline: over ? "The game is over" : (this.headline ?? (this.busy ? "Your move is on its way" : null)),
            note: over ? (this.agentsHand ? "The agent's hand is shown above." : "") : this.busy ? "" : null,
            opponentHand: over ? this.agentsHand : null,
          })
        : genericTable({
            ...shown,
            seat: game.seat,
            headline: this.headline ?? (game.over ? "The game is over" : playing ? "Your turn" : "The agent's turn"),
            note: playing ? `Choose one of ${count(game.legal.length, "move")} below.` : "",
          }),
    );
    // What is above may have grown: the player's own cards stay where he looks at them.
    if (!over && place > 0 && place < innerHeight) scrollBy(0, (this.ownPlace()?.getBoundingClientRect().top ?? place) - place);
    if (hadFocus) this.keepFocus(playing);
  }

  /** Where the player chooses. @returns {HTMLElement|null} */
  ownPlace() {
    return this.table.querySelector(".hand, .moves");
  }

  /** The game has just ended, wherever its player was looking; who reads the side panel is left there. */
  showResult() {
    const heading = this.table.querySelector("#result");
    if (heading instanceof HTMLElement && !this.side.element.contains(document.activeElement)) heading.focus({ preventScroll: true });
    this.table.querySelector(".result")?.scrollIntoView({ block: "nearest" });
  }

  /** After an answer: what comes next must not be out of sight. */
  keepInSight() {
    const owing = this.table.querySelector("[data-response=payer]") && this.table.querySelector(".side--own");
    const next = owing ?? this.ownPlace();
    if (!next) return;
    const { top, bottom } = next.getBoundingClientRect();
    if (bottom < PEEK || top > innerHeight - PEEK) next.scrollIntoView({ block: "nearest" });
  }

  /** A keyboard stays at the table: on the first card that can be played, on the result, or on what is told. @param {boolean} playing */
  keepFocus(playing) {
    const active = /** @type {HTMLElement} */ (document.activeElement);
    if (this.table.contains(active) && active.dataset.key !== "status") return;
    const place = (playing && this.table.querySelector("[data-move]:not([data-move=pass])")) || this.table.querySelector("#result") || this.table.querySelector("[data-key=status]");
    if (place instanceof HTMLElement) place.focus({ preventScroll: true });
  }

  drawSide() {
    const { seat } = this.game;
    this.side.update(this.game, this.busy, this.isDeal() ? story(this.events, seat) : this.events.map((e) => ({ text: e.text, actor: e.actor, last: e.number })));
  }

  /** What the end was, and what one can do next. */
  result() {
    const { game } = this;
    const gain = game.utilities?.[game.seat];
    return h(
      "section",
      { class: `result result--${game.outcome}`, "aria-labelledby": "result" },
      h("h2", { id: "result", tabindex: "-1", text: ending(game) }),
      h("p", {
        text: [
          `${count(game.move_number, "move")} against ${opponentName(game)}.`,
          this.isDeal() || gain === undefined ? "" : ` Result: ${signed(gain)}.`,
        ].join(""),
      }),
      h(
        "div",
        { class: "buttons" },
        h("button", { class: "button button--main", type: "button", id: "again", onclick: () => playAgain(game), text: "Play again" }),
        h("a", { class: "button", href: address("replay", game.id), text: "Watch the replay" }),
        h("button", { class: "button", type: "button", onclick: () => this.side.select("decisions"), text: "The agent's decisions" }),
        game.opponent.run ? h("a", { class: "button", href: address("policy", game.opponent.run), text: "Its policy" }) : null,
      ),
    );
  }

  /** @param {Event[]} events */
  story(events) {
    return this.isDeal() ? story(events, this.game.seat).map(({ text }) => text) : events.map(({ text }) => text);
  }

  isDeal() {
    return this.game.game === "deal";
  }
}

/** @param {boolean} unknown whether a game was asked for that is not there */
function welcome(unknown) {
  return h(
    "div",
    { class: "welcome" },
    h("div", { class: "welcome__cards", "aria-hidden": "true" }, ...["brown", "green", "pink"].map((colour) => h("span", { class: "welcome__card", "data-colour": colour }))),
    h("h1", { text: unknown ? "That game is not here" : "Play against a trained agent" }),
    h("p", {
      class: "lede",
      text: unknown
        ? "This browser does not hold its secret, or the gateway does not know it any more. Begin another one."
        : "Complete property sets, charge rent, answer with Just Say No. The agent plays by exactly the policy that training found; ask at any time what it would do in your place.",
    }),
    h("button", { class: "button button--main", type: "button", id: "new-game", onclick: () => startGame(null), text: "New game" }),
    unfinishedGames(),
  );
}

/** @param {GameState|null} present the game at the table */
async function startGame(present) {
  const created = await askForGame(present);
  if (created) enter(created);
}

/** The same opponent, the same settings. @param {GameState} game */
async function playAgain({ id }) {
  const wanted = games()[id]?.wanted;
  if (!wanted) return startGame(null);
  try {
    enter({ ...(await createGame(wanted)), wanted });
  } catch {
    await startGame(null); // the opponent may be gone: choose another one
  }
}

/** @param {{secret: string, game: GameState, wanted: unknown}} created */
function enter({ secret, game, wanted }) {
  rememberGame(game.id, { secret, wanted, game: game.game, title: shortTitle(game.title), opponent: opponentName(game), begun: new Date().toISOString(), outcome: null });
  remember("current", game.id);
  location.hash = address("play", game.id);
}

/** @param {GameState} game */
function ending({ outcome }) {
  return { won: "You won", lost: "The agent won", draw: "A draw", resigned: "You resigned" }[outcome ?? ""] ?? "The game is over";
}

/** @param {GameState} game */
function opponentName({ opponent }) {
  if (opponent.kind === "baseline") return `the ${readable(opponent.name).toLowerCase()} baseline`;
  return `${opponent.name} (${count(opponent.snapshot ?? 0, "game")})`;
}
