/** Beside the table: what happened, what the agent would do, what it did, and the rules. */

import { remember, remembered } from "../store.js";
import { address } from "../router.js";
import { count, failure, fill, h, loading, readable, weighed } from "../ui.js";
import { rulesText } from "./rules.js";

const TABS = [
  { name: "history", title: "History" },
  { name: "advice", title: "Advice" },
  { name: "decisions", title: "Decisions" },
  { name: "rules", title: "Rules" },
];

/**
 * @param {ReturnType<typeof import("../api.js").gameApi>} api
 */
export function sidePanel(api) {
  const buttons = TABS.map(({ name, title }) =>
    h("button", { class: "tab", type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "side-body", onclick: () => choose(name), onkeydown: arrows, text: title }),
  );
  const body = h("div", { class: "tabs__body", id: "side-body", role: "tabpanel", tabindex: "0" });
  const element = h("aside", { class: "panel tabs", "aria-label": "Beside the table" }, h("div", { class: "tabs__list", role: "tablist", "aria-label": "Beside the table" }, ...buttons), body);

  /** @type {string} */
  let tab = known(remembered("tab", "history"));
  /** @type {import("./view.js").GameState|null} */
  let game = null;
  let busy = false;
  /** @type {{text: string, actor: number|null, last: number}[]} */
  let told = [];
  let drawn = ""; // what the body shows, as far as it was asked for

  /** @param {string} name */
  function choose(name) {
    tab = name;
    remember("tab", name);
    draw();
  }

  function draw() {
    if (!game) return;
    for (const button of buttons) {
      const on = button.id === `tab-${tab}`;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    body.setAttribute("aria-labelledby", `tab-${tab}`);
    const wanted = `${tab} ${game.id} ${game.move_number} ${game.over} ${busy}`;
    if (tab === "history") fill(body, history(told, game.seat));
    else if (wanted !== drawn && tab === "advice") advice(wanted);
    else if (wanted !== drawn && tab === "decisions") decisions(wanted);
    else if (wanted !== drawn) rules();
    drawn = wanted;
  }

  /** @param {string} wanted */
  async function advice(wanted) {
    if (game && isRandom(game)) return fill(body, note("This opponent plays at random. It has no policy, so there is nothing to advise."));
    if (!game?.your_turn || busy) return fill(body, note(game?.over ? "The game is over. The replay shows what the agent made of each of its decisions." : "It is not your turn yet."));
    await asked(wanted, api.advice(), (found) => [
      h("p", { class: "hint", text: found.search ? "What each move would win on average, by what you see: the agent would play the best." : "What the agent would do in your place, by what you see." }),
      weighed(found, (a) => (readable(a.move) === readable(a.name) ? (found.search && a.probability ? "best" : null) : a.move)),
      infosetNote(found),
    ]);
  }

  /** @param {string} wanted */
  async function decisions(wanted) {
    if (!game?.over && !game?.open) {
      return fill(body, note("The agent's own policy stays hidden until the game is over: what it could have done would give its hand away. An open game shows it at once."));
    }
    await asked(wanted, api.decisions(), (made) => [
      note(made.length ? "What the agent could have done at each of its moves, and how likely each was or, where it thought ahead, what each was worth. The newest move is first." : "The agent has not decided anything yet."),
      h(
        "ol",
        { class: "decisions" },
        ...made.toReversed().map((/** @type {any} */ decision, /** @type {number} */ k) =>
          h(
            "li",
            {},
            h(
              "details",
              { open: k === 0 },
              h("summary", {}, `Move ${decision.move_number + 1}: `, h("strong", { text: decision.move })),
              weighed(decision, (a) => (a.move === decision.move ? "played" : null)),
              infosetNote(decision),
            ),
          ),
        ),
      ),
    ]);
  }

  function rules() {
    if (game) fill(body, rulesText(game));
  }

  /**
   * @param {string} wanted
   * @param {Promise<any>} answer
   * @param {(found: any) => (Node|null)[]} build
   */
  async function asked(wanted, answer, build) {
    if (!body.querySelector(".bars")) fill(body, loading("the policy"));
    try {
      const found = await answer;
      if (wanted === drawn) fill(body, ...build(found));
    } catch (error) {
      if (wanted === drawn) fill(body, failure(error));
    }
  }

  /** @param {any} found */
  function infosetNote({ identifier, known: met, visits, search }) {
    const run = game?.opponent.run;
    const where = run && met ? h("a", { href: address("policy", run, new URLSearchParams({ infoset: identifier })) }, h("code", { text: identifier })) : h("code", { text: identifier });
    const standing = visits === null ? "A baseline: nothing was learnt." : met ? `Updated ${count(visits, "time")} in training.` : "Never met in training, so every action is as likely.";
    return h("p", { class: "hint" }, search ? `Thought ahead: ${count(search, "sample")}. ` : "", standing, h("br"), where);
  }

  /** @param {KeyboardEvent} event */
  function arrows(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (TABS.findIndex(({ name }) => name === tab) + step + TABS.length) % TABS.length;
    choose(TABS[next].name);
    buttons[next].focus();
  }

  return {
    element,
    /** @param {string} name */
    select(name) {
      choose(name);
      element.scrollIntoView({ block: "nearest" });
      buttons[TABS.findIndex((t) => t.name === name)].focus();
    },
    /**
     * @param {import("./view.js").GameState} state
     * @param {boolean} isBusy
     * @param {{text: string, actor: number|null, last: number}[]} story
     */
    update(state, isBusy, story) {
      game = state;
      busy = isBusy;
      told = story;
      draw();
    },
  };
}

/** @param {import("./view.js").GameState} game */
const isRandom = ({ opponent }) => opponent.kind === "baseline" && opponent.name === "random";

/** @param {{text: string, actor: number|null, last: number}[]} told @param {number} seat */
function history(told, seat) {
  return h(
    "div",
    {},
    h("p", { class: "hint history__order", text: "Newest first" }),
    h(
      "ol",
      { class: "history", reversed: true },
      ...told.toReversed().map(({ text, actor, last }) => h("li", { class: actor === null ? "history__chance" : actor === seat ? "history__own" : "history__agent", value: last, text })),
    ),
  );
}

/** A tab that an earlier version of the page knew may be gone. @param {string} tab */
const known = (tab) => (TABS.some(({ name }) => name === tab) ? tab : TABS[0].name);

/** @param {string} text */
const note = (text) => h("p", { class: "hint", text });
