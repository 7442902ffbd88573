"""The page."""

from fastapi import FastAPI


def install(app: FastAPI) -> None:
    """Add the page."""
