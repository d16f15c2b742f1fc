"""Reports on runs: what is measured (subject, compare), told (claims, figures, sections) and drawn
(chart, page). Loaded only by the commands that need it, because it brings matplotlib."""
