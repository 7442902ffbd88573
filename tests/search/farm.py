"""Project in which a function is only found through its caller, because many files are closer to the query."""

from pathlib import Path

from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.runner.run import index
from docindex_dagster.sources import registry

QUERY = "water the dry field of wheat"
CALLER, CALLEE, ALIKE = "farm/irrigation.py", "machines/gear.py", "machines/clutch.py"
FILES = {
    CALLER: """from machines.gear import engage

def irrigate(field):
    '''Water the dry field of wheat.'''
    return engage(field, 3)
""",
    CALLEE: "def engage(unit, times):\n    for _ in range(times):\n        unit.ratio *= 2\n    return unit\n",
    ALIKE: "def slip(unit, times):\n    for _ in range(times):\n        unit.ratio /= 2\n    return unit\n",
    "machines/__init__.py": "",
    # More files close to the query than a retriever returns as candidates or a context can hold.
    **{f"farm/year_{number}.py": f"YEAR_{number} = 'the wheat grew well'\n" for number in range(150)},
}


def indexed(root: Path, settings: str = "") -> Settings:
    """Write and index the project."""
    for name, text in FILES.items():
        file = root / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root / CONFIG_NAME).write_text(f'[[source]]\nkind = "library"\npath = "files"\n{settings}')
    project = load_settings(root)
    (source,) = registry.sources(project).values()
    index(project, source, StaticEmbedder())
    return project
