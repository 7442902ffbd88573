"""Tests of the pages for sources, jobs, commits and problems, and of static files."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from docindex_dagster.render.html import pictures, templating
from docindex_dagster.serving.http.problems import KINDS
from tests.serving.web import project

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "docindex_dagster"
FILES = [*(PACKAGE / "serving/web/static").iterdir(), *(PACKAGE / "render/html/templates").iterdir()]


def texts(page, selector: str) -> list[str]:
    return [" ".join(node.text().split()) for node in page.css(selector)]


def test_the_sources_say_how_they_stand_and_can_be_indexed(read):
    page = read("/sources")
    assert texts(page, ".card h2") == ["git/shop", "library/manual"]
    assert {button.attributes["data-post"] for button in page.css(".card button")} == {
        "/api/v1/sources/git/shop/index",
        "/api/v1/sources/library/manual/index",
    }
    assert page.css_first("form[data-post='/api/v1/sources']") is not None


def test_a_source_says_what_it_holds_and_what_was_left_out(read):
    page = read("/source/library/manual")
    figures = dict(zip(texts(page, ".figures dt"), texts(page, ".figures dd"), strict=True))
    assert figures["files"] == "3"
    assert any("yarn.lock" in text for text in texts(page, ".rule li"))
    assert texts(read("/source/git/shop"), ".commit a")[-1] == "Add the tank"


def test_a_source_that_is_not_there_is_a_mistake(client):
    answer = client.get("/source/git/nobody")
    assert (answer.status_code, "/problems/unknown-source" in answer.text) == (404, True)


def test_commits_can_be_searched_and_opened(client, read):
    page = read("/log?q=tank&path=tank.py")
    (link,) = page.css(".commit a")
    commit = read(link.attributes["href"])
    assert commit.css_first("h1").text() == "Add the tank"
    assert "It holds water." in commit.css_first(".message").text()
    assert "tank.py" in texts(commit, ".changes a")
    assert client.get("/file/git/shop/.git/commit/" + "0" * 40).status_code == 404


def test_commits_that_nothing_fits_say_so(read):
    assert read("/log?author=nobody").css_first(".empty") is not None


def test_a_day_that_is_none_is_a_mistake(client):
    assert client.get("/log?since=2026-99-99").status_code == 422


def test_jobs_that_were_never_run_say_how_to_begin(read):
    assert "No jobs yet" in read("/jobs").css_first(".empty").text()


@pytest.mark.parametrize("name", list(KINDS))
def test_each_kind_of_problem_is_explained_at_its_address(read, name):
    assert read(f"/problems/{name}").css_first("h1").text() == KINDS[name].title


def test_mistakes_are_pages_for_browsers_and_problems_for_programs(client):
    page = client.get("/nowhere")
    assert (page.status_code, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "/problems/not-found" in page.text
    program = client.get("/nowhere", headers={"Accept": "application/json"})
    assert program.json()["type"] == "/problems/not-found"
    assert client.get("/api/v1/jobs/none").headers["Content-Type"] == "application/problem+json"


def test_a_page_is_not_kept_and_what_it_is_made_of_is_asked_for_again(client):
    assert client.get("/").headers["Cache-Control"] == "no-store"
    answer = client.get("/static/page.css")
    assert answer.headers["Cache-Control"] == "no-cache"
    assert client.get("/static/page.css", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert client.get("/favicon.ico").headers["Content-Type"] == "image/svg+xml"


@pytest.mark.parametrize(
    "address", ["/", "/?q=pump", "/sources", "/file/git/shop/tank.py?symbol=pump", "/login", "/jobs"]
)
def test_no_page_holds_scripts_styles_or_addresses_of_its_own(client, address):
    html = client.get(address).text
    assert "<style" not in html
    assert " style=" not in html
    assert " onclick=" not in html
    assert all("src=" in part.partition(">")[0] for part in html.split("<script")[1:])


def test_nothing_of_the_page_names_another_host():
    for file in FILES:
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text.replace("https://example.org/team/app.git", "").replace(
            "http://127.0.0.1:8090/mcp", ""
        )


def test_the_wheel_holds_templates_and_static_files(tmp_path):
    copy = tmp_path / "docindex"
    shutil.copytree(ROOT / "docindex_dagster", copy / "docindex_dagster", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    subprocess.run(build, cwd=copy, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = set(wheel.namelist())
    for file in FILES:
        assert str(file.relative_to(ROOT)) in packed


def test_small_languages_share_a_shade_and_the_parts_fill_the_bar():
    counts = {"python": 60, "go": 20, **{f"l{number}": 4 for number in range(5)}}
    shares = pictures.shares(counts)
    assert [share.name for share in shares] == ["python", "go", "l0", "l1", "l2", "l3", "1 other"]
    assert sum(share.percent for share in shares) == pytest.approx(100)
    assert pictures.shares({}) == []


def test_a_moment_is_shown_by_how_long_ago_it_was():
    assert templating.ago(None) == ""
    assert templating.ago("2020-05-01T10:00:00+00:00") == "2020-05-01"
    assert templating.seconds_between(None, None) is None
    assert templating.seconds_between("2020-05-01T10:00:00+00:00", "2020-05-01T10:01:05+00:00") == 65


def test_the_project_of_these_tests_holds_what_attackers_write(indexed):
    assert (indexed / "shop" / project.HOSTILE_NAME).exists()
