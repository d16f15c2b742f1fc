// Runs before the first paint, so that a stored choice does not flash.
(() => {
  let stored = null;
  try {
    stored = localStorage.getItem("rejoinder.theme");
  } catch {
    return; // storage is forbidden: the system's theme stays
  }
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
})();
