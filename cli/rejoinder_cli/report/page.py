"""The report page: one HTML file with its charts inside, readable offline, light or dark."""

from __future__ import annotations

import html

from rejoinder_cli.report.sections import SECTIONS, Report


def page(report: Report) -> str:
    """The whole page."""
    title, subtitle = _titles(report)
    made = (make(report) for make in SECTIONS)
    return _PAGE.format(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        style=_STYLE,
        body="\n".join(part for part in made if part),
    )


def _titles(report: Report) -> tuple[str, str]:
    first = report.subjects[0]
    game = first.config.load_game()
    if report.alone is None:
        names = ", ".join(subject.name for subject in report.subjects)
        return f"{len(report.subjects)} runs of {game.title}", names
    rules = [name for name, rules in game.configurations.items() if rules == first.config.rules]
    how = f"rules {rules[0]}" if rules else "rules of its own"
    if report.judgements:
        return "The paper’s experiment, again", f"{game.title}: {first.games:,} games"
    return (
        f"{game.title}: {first.games:,} games",
        f"{how}, abstraction {first.config.abstraction}, seed {first.config.seed}",
    )


_STYLE = """
:root { color-scheme: light dark;
  --ink: #1b1f24; --paper: #fdfdfb; --card: #f4f4f0; --faint: #5f6672; --rule: #e3e3de;
  --yes: #0a7a4b; --no: #b42318; --notice: #fff4d6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e3; --paper: #16181b; --card: #1f2226; --faint: #9aa1ab; --rule: #2d3137;
    --yes: #4ade80; --no: #fb8b7e; --notice: #3a3117; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 2.5rem 1.25rem 5rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
.eyebrow { margin: 0; color: var(--faint); font-size: .8125rem; letter-spacing: .04em; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: .2rem 0 .3rem; }
h2 { font-size: 1.2rem; margin: 0 0 .8rem; }
h3 { font-size: .95rem; margin: 0 0 .5rem; }
section { margin-top: 3rem; }
section > p, header p { max-width: 46rem; color: var(--faint); margin: 0 0 1rem; }
.notice { background: var(--notice); padding: .7rem 1rem; border-radius: .5rem; }
.tiles { display: grid; gap: .75rem; margin-top: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); }
.tiles div { background: var(--card); border-radius: .6rem; padding: .8rem 1rem; }
.tiles strong { display: block; font-size: 1.5rem; line-height: 1.2; }
.tiles span, .tiles small { display: block; font-size: .8125rem; }
small { color: var(--faint); font-size: .8125rem; }
td small, td > b + small, th small { display: block; font-weight: 400; }
.data td small { display: inline; }
.figures { display: grid; gap: 2.75rem 2.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.wide { grid-column: 1 / -1; }
.panels { display: grid; gap: .5rem 2.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.panels.small { grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: 1rem; }
figure { margin: 0; min-width: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { color: var(--faint); font-size: .8125rem; margin-top: .4rem; max-width: 46rem; }
.key { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0;
  margin: .5rem 0 0; font-size: .875rem; }
.key i { display: inline-block; width: 1.2rem; height: .2rem; border-radius: .1rem;
  margin-right: .45rem; vertical-align: middle; }
details { margin-top: .4rem; font-size: .8125rem; }
summary { cursor: pointer; color: var(--faint); }
.scroll { overflow-x: auto; }
figure + .scroll, .figures + .scroll, section > .scroll + .scroll, .scroll + p { margin-top: 2rem; }
details .scroll { max-height: 20rem; overflow: auto; margin-top: .4rem; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem 1rem .45rem 0;
  border-bottom: 1px solid var(--rule); }
td:last-child { padding-right: 0; }
thead th { color: var(--faint); font-weight: 500; font-size: .8125rem; }
tbody th { font-weight: 500; }
.plain tbody th { width: 17rem; color: var(--faint); }
.plain td, .data td { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  font-size: .8125rem; overflow-wrap: anywhere; }
.data th, .data td { white-space: nowrap; padding: .2rem 1rem .2rem 0; }
.differs td { font-weight: 700; }
.claims tbody th { white-space: nowrap; color: var(--faint); font-weight: 400; }
.claims td:nth-child(2) { width: 40%; } .claims td:nth-child(3) { white-space: nowrap; }
.claims td { min-width: 9rem; }
.verdict { display: block; } .yes { color: var(--yes); } .no { color: var(--no); }
.unknown { color: var(--faint); }
@media (max-width: 40rem) {
  body { padding: 1.5rem 1rem 3rem; }
  .tiles { grid-template-columns: repeat(2, 1fr); }
  .claims, .claims tbody, .claims tr, .claims th, .claims td { display: block; width: auto; }
  .claims thead { display: none; }
  .claims tr { border-bottom: 1px solid var(--rule); padding: .6rem 0; }
  .claims td:nth-child(3)::before { content: "the paper: "; color: var(--faint); }
  .claims th, .claims td, .claims td:nth-child(2) { border: 0; padding: .1rem 0; width: auto; }
  .plain tbody th { width: 9rem; }
}
@media print { details { display: none; } section { break-inside: avoid-page; } }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<p class="eyebrow">Rejoinder report</p>
<h1>{title}</h1>
<p>{subtitle}</p>
</header>
{body}
</body>
</html>
"""
