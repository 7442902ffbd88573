"""Going back to the generation before the published one."""

from docindex_dagster.core.errors import DamagedStoreError, StoreError
from docindex_dagster.core.layout import Layout
from docindex_dagster.stores import clean_up, doctor, takeover
from docindex_dagster.stores.generation import Generation, read_generation, write_generation


def roll_back(layout: Layout) -> Generation:
    """Publish the generation before the present one again; a second call undoes the first.

    It may be of another model: then publications of the present one have to take over again. The caller holds the
    publication lock.

    Raises:
        StoreError: there is none, or it is damaged; the present one stays published.
    """
    previous = read_generation(layout, previous=True)
    if previous is None:
        raise StoreError("there is no generation before the published one")
    try:
        doctor.check(layout, previous)
    except DamagedStoreError as error:
        reason = f"generation {previous.number} cannot be gone back to: {error.problem}"
        raise StoreError(f"{reason}; searches go on with the present one") from error
    write_generation(layout, previous)
    if takeover.pending(layout) is None:
        takeover.drop(layout)  # it was to bring back the model that searches use again
    clean_up.remove_old_generations(layout)
    return previous
