/**
 * Hash routes: `#/view/argument?query`. A view is a function that fills an element and returns
 * what ends it.
 *
 * @typedef {{view: string, argument: string|null, query: URLSearchParams}} Route
 * @typedef {(main: HTMLElement, route: Route) => (() => void)} View
 */

/**
 * @param {HTMLElement} main
 * @param {Record<string, {title: string, show: View}>} views the first one is the default
 */
export function startRouter(main, views) {
  let end = () => {};
  let first = true;

  function go() {
    const route = parse(location.hash);
    if (!Object.hasOwn(views, route.view)) {
      if (!first && location.hash && !location.hash.startsWith("#/")) return; // a skip link
      location.replace(`#/${Object.keys(views)[0]}`);
      return;
    }
    end();
    main.replaceChildren();
    for (const link of document.querySelectorAll("[data-view]")) {
      if (link.getAttribute("data-view") === route.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${views[route.view].title} · Rejoinder`;
    document.body.dataset.shows = route.view;
    end = views[route.view].show(main, route);
    if (!first) main.focus({ preventScroll: true });
    first = false;
  }

  addEventListener("hashchange", go);
  go();
}

/**
 * Change the query of the address without showing the view anew.
 * @param {Record<string, string|null>} changes
 */
export function noteInAddress(changes) {
  const { view, argument, query } = parse(location.hash);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(null, "", address(view, argument, query));
}

/** @param {string} view @param {string|null} argument @param {URLSearchParams} [query] */
export function address(view, argument, query) {
  const text = query?.toString();
  return `#/${view}${argument ? `/${encodeURIComponent(argument)}` : ""}${text ? `?${text}` : ""}`;
}

/** @param {string} hash @returns {Route} */
function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view, argument] = path.split("/");
  try {
    return { view, argument: argument ? decodeURIComponent(argument) : null, query: new URLSearchParams(query) };
  } catch {
    return { view: "", argument: null, query: new URLSearchParams() }; // no address of this page
  }
}
