"""The shape of the engine: what it loads, and which way its arrows point."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import engine

ENGINE = Path(engine.__file__).parent
FILES = {
    ".".join(("engine", *path.relative_to(ENGINE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ENGINE.rglob("*.py"))
}
OF_THE_PAGE = {"streamlit", "plotly", "pandas", "dashboard"}
# what a part may import of the engine; a part that is not named here stands above all of these
ARROWS = {
    "engine.errors": (),
    "engine.sampling": ("errors", "sampling"),
    "engine.evidence": (),
    "engine.stopping": (),
    "engine.tree": (),
    "engine.values": ("errors", "evidence", "sampling", "tree"),
    "engine.laws": ("sampling",),
    "engine.lengths": ("errors", "laws", "lengths", "sampling"),
    "engine.theory": ("errors",),
    "engine.models": ("errors", "folders", "models", "sampling", "stopping", "tree", "values"),
    "engine.gumbels": ("lengths", "sampling"),
    "engine.acceptance": ("acceptance", "errors", "evidence", "gumbels", "laws", "sampling", "tree", "values"),
    "engine.drafters": (
        "acceptance.tree", "drafters", "errors", "laws", "lengths", "models.attention", "models.base", "models.jit",
        "models.packed", "models.rope", "models.threads", "models.tree_rows", "sampling", "tree", "values",
    ),
    "engine.heads": ("drafters", "errors", "models"),
    "engine.text": ("models.base", "values"),
    "engine.output": ("models.base", "text", "values"),
    "engine.stopwatch": ("models.base",),
    "engine.probe": ("acceptance", "errors", "evidence", "gumbels", "laws", "output", "sampling", "tree", "values"),
    "engine.checks": ("acceptance", "drafters.base", "errors", "models.base", "sampling", "tree", "values"),
    "engine.decisions": ("output", "sampling", "tree", "values"),
    "engine.decode": (
        "acceptance", "checks", "decisions", "drafters.base", "errors", "lengths", "models.base", "models.tree_rows",
        "output", "probe", "sampling", "stopping", "stopwatch", "text", "values",
    ),
    "engine.metrics": ("values",),
    "engine.report": ("metrics", "values"),
    "engine.telemetry": ("errors", "telemetry", "values"),
    "engine.spec": ("acceptance", "drafters", "errors", "lengths", "sampling"),
    "engine.rules": ("acceptance", "spec"),
    "engine.policies": ("lengths", "spec"),
    "engine.drafter_kinds": ("acceptance", "drafters", "errors", "heads", "lengths", "models", "rules", "spec"),
    "engine.build": (
        "acceptance", "decode", "drafter_kinds", "drafters", "errors", "lengths", "models", "policies", "probe",
        "rules", "sampling", "spec", "stopping", "values",
    ),
}  # fmt: skip


def imported(path, *, everywhere=True):
    """The modules that a file imports: anywhere in it, or only when it is loaded itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written from the root"
            for name in node.names:  # `from engine.models import catalog` imports a module
                whole = f"{node.module}.{name.name}"
                yield whole if whole in FILES else node.module


def part_of(module):
    """The part of `ARROWS` that a module belongs to, or None."""
    return next((part for part in ARROWS if module == part or module.startswith(f"{part}.")), None)


def test_importing_the_engine_loads_numpy_and_the_standard_library_only():
    program = (
        "import sys; before = set(sys.modules); import engine; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ENGINE.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) - set(sys.stdlib_module_names) == {"engine", "numpy"}


@pytest.mark.parametrize("module", FILES)
def test_engine_knows_nothing_of_the_dashboard(module):
    assert not {name.partition(".")[0] for name in imported(FILES[module])} & OF_THE_PAGE


@pytest.mark.parametrize("module", [module for module in FILES if part_of(module)])
def test_arrows_point_one_way(module):
    allowed = [f"engine.{name}" for name in ARROWS[part_of(module)]]
    for name in imported(FILES[module]):
        if name.partition(".")[0] == "engine":
            assert any(name == part or name.startswith(f"{part}.") for part in allowed), name


def test_every_part_of_the_arrows_exists():
    assert set(ARROWS) <= set(FILES)


def test_no_module_imports_itself_in_a_circle():
    graph = {module: set(imported(path, everywhere=False)) & set(FILES) for module, path in FILES.items()}
    del graph["engine"]  # the list of public names stands above them all
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) >= len(graph)


def test_public_names_are_sorted_and_complete():
    assert engine.__all__ == sorted(engine.__all__)
    bound = {
        name.asname or name.name
        for node in ast.parse(FILES["engine"].read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert bound == set(engine.__all__)
    assert all(getattr(engine, name).__doc__ for name in engine.__all__ if name not in ("Event", "Law"))


@pytest.mark.parametrize("module", FILES)
def test_module_says_what_it_is_for(module):
    assert ast.get_docstring(ast.parse(FILES[module].read_text(encoding="utf-8")))
