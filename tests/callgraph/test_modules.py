"""Candidate paths for imported modules."""

import re

from docindex_dagster.callgraph.modules import Modules, Search

SEARCH = Search(("{}.x", "lib/{}.x"), ending=".x", near=re.compile(r"\.|std$"))


def found(search: Search, importer: str, name: str, *paths: str) -> list[str]:
    return [*search.find(Modules(frozenset({importer, *paths}), str), importer, name)]


def test_a_file_is_beside_the_importer_or_in_a_folder_of_the_language_there():
    assert found(SEARCH, "a/main.x", "b", "a/b.x", "a/lib/b.x", "b.x") == ["a/b.x"]
    assert found(SEARCH, "a/main.x", "b", "a/lib/b.x", "b.x") == ["a/lib/b.x"]


def test_folders_above_are_searched_from_the_inside_to_the_root():
    assert found(SEARCH, "a/c/main.x", "b", "a/b.x", "b.x") == ["a/b.x"]
    assert found(SEARCH, "a/c/main.x", "b", "lib/b.x") == ["lib/b.x"]


def test_a_name_may_be_written_with_its_ending():
    assert found(SEARCH, "main.x", "b.x", "b.x") == ["b.x"]


def test_a_relative_name_is_looked_for_beside_the_importer_alone():
    assert found(SEARCH, "a/main.x", "../b", "b.x") == ["b.x"]
    assert found(SEARCH, "a/main.x", "./b", "b.x", "a/lib/b.x") == []


def test_a_name_of_the_library_is_a_file_beside_the_importer_or_none():
    assert found(SEARCH, "a/main.x", "std", "std.x") == []
    assert found(SEARCH, "a/main.x", "std", "a/std.x") == ["a/std.x"]


def test_a_file_does_not_import_itself_by_a_name_that_others_may_have():
    assert found(SEARCH, "a/b.x", "b", "b.x") == ["b.x"]


def test_of_files_anywhere_the_nearest_is_taken_whose_path_ends_as_the_name_does():
    search = Search(is_dotted=True, climbs=False, anywhere=(".x",))
    paths = ("far/Data/Map.x", "a/Data/Map.x", "a/b/Other/Map.x")
    assert found(search, "a/b/main.x", "Data.Map", *paths) == ["a/Data/Map.x"]
    assert found(search, "a/b/main.x", "Data.Set", *paths) == []


def test_what_leads_out_of_the_source_is_no_file_of_it():
    assert found(SEARCH, "main.x", "../../b", "b.x") == []
