"""The notebooks in the documentation run, and show what they say; they are kept without outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))

nbformat = pytest.importorskip("nbformat", reason="needs Jupyter's libraries: the extra dev")
nbclient = pytest.importorskip("nbclient")


def test_there_is_one() -> None:
    assert [path.name for path in NOTEBOOKS] == ["policy.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_kept_without_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.cell_type == "markdown" or not (cell.outputs or cell.execution_count)


@pytest.mark.slow
def test_the_policy_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert all(output.output_type != "error" for output in outputs)
    texts = [o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs]
    assert any('"abstraction_cls"' in text for text in texts)
    assert "True" in texts  # the file gives the same rows
    assert any("IntentStateAbstraction@" in text and "mean regret" in text for text in texts)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
