"""Reference page of the events of a run."""

import dataclasses
import inspect
from typing import get_args

from docindex_dagster.core import events
from tests.reference.markdown import table

_ABOUT = """\
# Events

While docindex indexes, it announces these events to listeners in the same process. Progress bars, logs and metrics use
them. Import them from `docindex_dagster.core.events`.

```python
from docindex_dagster.core import events

with events.listening(print):
    ...
```
"""


def page() -> str:
    """Return the page."""
    rows = (
        (
            f"`{kind.__name__}`",
            ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind)),
            inspect.getdoc(kind) or "",
        )
        for kind in get_args(events.Event)
    )
    return f"{_ABOUT}\n{table(('event', 'fields', 'meaning'), rows)}"
