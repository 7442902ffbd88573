"""Print the findings of the linter: `python -m tests.prose [FILE ...]`; without files, check the whole project."""

import sys
from pathlib import Path

from tests.prose.lint import lint, project_files

findings = list(lint(map(Path, sys.argv[1:]) if sys.argv[1:] else project_files()))
print("\n".join(map(str, findings)) or "prose: no findings")
sys.exit(bool(findings))
