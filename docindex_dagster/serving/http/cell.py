"""What a server that searches several cells asks of the server of each: no part of the API for others."""

from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from docindex_dagster.search import wire
from docindex_dagster.search.remote_cells import NUMBER, OUTDATED
from docindex_dagster.serving.http.served import Project
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

router = APIRouter(include_in_schema=False)


@router.get("/cell")
def generation(project: Project) -> Response:
    """What this cell has published."""
    published = project.reading(lambda reader: reader.generation)
    return Response(wire.written(published), media_type="application/json")


@router.post("/cell/{name}")
async def ask(project: Project, request: Request, name: str, number: Annotated[int, Header(alias=NUMBER)]) -> Response:
    """The answer to a question of the generation with a number; that it is outdated, if it is."""
    question = wire.question(name, await request.body())

    def answer(reader: Reader) -> Response:
        if reader.generation.number != number:
            return Response(status_code=OUTDATED)
        with reading_stores():
            return Response(wire.written(question.of(reader)), media_type="application/json")

    return await run_in_threadpool(project.reading, answer)
