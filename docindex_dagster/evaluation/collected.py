"""Questions that users collect as they search: each with the place that answered it, in the format of `question_file`.

They stay on this machine, in a file of the home; nothing is written unless a user asks for it.
"""

import json
import os
from pathlib import Path

from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.settings import Settings
from docindex_dagster.search.model import Hit


def collect(settings: Settings, question: str, hit: Hit) -> Path:
    """Note that a hit answers a question; gives the file.

    Raises:
        QueryError: the hit is a commit.
        AccessError: the home may not be written.
        FullDiskError: there is no space left.
    """
    if hit.source_type == "commit":
        raise QueryError("a commit answers no question of an evaluation: only files do")
    place = f"{hit.path}:{hit.start_line}-{hit.end_line}"
    record = {"question": " ".join(question.split()), "path": place, "source": hit.source}
    with writing(settings) as layout, reporting_full_disk(layout.home):
        owner = f"questions of process {os.getpid()}"
        with exclusive(layout.feedback_lock, owner, lambda _: None), layout.questions.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
    return layout.questions
