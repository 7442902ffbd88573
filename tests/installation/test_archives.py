"""The wheel and the sdist are complete, pass the package index checks, and have the same contents."""

import hashlib
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.installation.conftest import ROOT, TOOLS, build

pytestmark = pytest.mark.dist
_LARGEST_WHEEL = 10 << 20


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_package_index_takes_both(built):
    subprocess.run([TOOLS / "twine", "check", "--strict", *built], check=True)


def test_the_contents_of_the_wheel_are_those_of_a_good_one(built):
    subprocess.run([TOOLS / "check-wheel-contents", built.wheel], check=True)


def test_the_sdist_builds_the_same_wheel_byte_for_byte(built, tmp_path):
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build(source, tmp_path / "again", "--wheel")
    assert sha256(tmp_path / "again" / built.wheel.name) == sha256(built.wheel)


def test_all_files_of_the_package_and_all_pages_are_in_the_wheel_and_nothing_else(built):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "docindex_dagster", "docs/*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    there = {name for name in listed.stdout.split("\n") if name and (ROOT / name).exists()}
    wanted = {f"docindex_dagster/{name}" if name.startswith("docs/") else name for name in there}
    names = {name for name in zipfile.ZipFile(built.wheel).namelist() if ".dist-info/" not in name}
    assert names == wanted


def test_the_sdist_holds_no_tests_and_no_pictures(built):
    with tarfile.open(built.sdist) as archive:
        tops = {Path(member.name).parts[1] for member in archive if member.isfile()}
    assert tops == {
        *(
            "CHANGELOG.md",
            "LICENSE",
            "PKG-INFO",
            "README.md",
            "docindex_dagster",
            "docs",
            "pyproject.toml",
            ".gitignore",
        )
    }


def test_neither_is_large(built):
    assert max(file.stat().st_size for file in built) < _LARGEST_WHEEL
