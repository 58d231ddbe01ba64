"""The notebook of the book: each cell in its turn, and what a cell ends with shows itself."""

import json
import pathlib

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python-tutorial.ipynb"


def test_notebook_runs():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict = {}
    pictures = 0
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        lines = "".join(cell["source"]).rstrip().split("\n")
        # The last line is shown, unless it belongs to a statement above.
        last = lines.pop() if not lines[-1].startswith(" ") else None
        try:
            shown = compile(last, f"cell {number}", "eval") if last else None
        except SyntaxError:
            lines, shown = [*lines, last], None
        exec(compile("\n".join(lines), f"cell {number}", "exec"), names)
        value = eval(shown, names) if shown else None
        assert value is None or repr(value)
        pictures += hasattr(value, "_repr_svg_") and value._repr_svg_().startswith("<svg")
    assert pictures == 5
