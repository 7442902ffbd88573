"""Name resolution in Python: modules, imports in functions, fixtures, decorators."""

from textwrap import dedent

from tests.graph.built import update_graph
from tests.graph.samples import Edge, chunks_of, edges, graph_of, opened


def calls(files: dict[str, str]) -> set[Edge]:
    """Return the calls resolved to a symbol inside the source."""
    found = edges(opened({path: dedent(text) for path, text in files.items()}), "calls")
    return {edge for edge in found if not edge[2].startswith(("external:", "unresolved:"))}


def test_a_package_is_found_in_src_and_not_as_a_file_of_its_name_in_some_folder():
    found = calls(
        {
            "src/web/__init__.py": "def run(): ...\n",
            "tests/apps/inner/web.py": "def run(): ...\n",
            "tests/test_web.py": "import web\n\ndef test_run():\n    web.run()\n",
        }
    )

    assert found == {("tests/test_web.py::test_run", "calls", "src/web/__init__.py::run")}


def test_a_file_in_a_package_is_no_module_of_its_bare_name():
    files = {
        "web/__init__.py": "NAME = 'web'\n",
        "web/parts/logging.py": "def getLogger(name): ...\n",  # next to an empty __init__.py
        "web/parts/page.py": "import logging\n\nlogging.getLogger('page')\n",
    }

    assert ("web/parts/page.py", "calls", "web/parts/logging.py::getLogger") not in calls(files)


def test_a_folder_that_becomes_a_package_changes_what_is_imported_in_it():
    files = {
        "web/logging.py": "def getLogger(name): ...\n",
        "web/page.py": "import logging\n\nlogging.getLogger('page')\n",
    }
    after = chunks_of({**files, "web/__init__.py": "NAME = 'web'\n"})

    updated = update_graph(graph_of(files), after)

    assert updated.triples.to_pylist() == graph_of({**files, "web/__init__.py": "NAME = 'web'\n"}).triples.to_pylist()


def test_what_a_function_imports_is_known_in_it_alone():
    found = calls(
        {
            "web/pages.py": "def show(): ...\ndef hide(): ...\n",
            "web/all.py": """
                def show():
                    from .pages import show
                    show()

                def first():
                    from .pages import show as run
                    run()

                def second():
                    from .pages import hide as run
                    run()
                """,
        }
    )

    assert found == {
        ("web/all.py::show", "calls", "web/pages.py::show"),
        ("web/all.py::first", "calls", "web/pages.py::show"),
        ("web/all.py::second", "calls", "web/pages.py::hide"),
    }


def test_a_call_of_an_object_makes_none_but_one_of_a_declared_class_does():
    found = calls(
        {
            "app.py": """
                from wsgi import Base

                class Response(Base): ...

                class App:
                    made: type[Response]

                    def respond(self, response: Response):
                        response()

                    def make(self):
                        self.made()

                    @classmethod
                    def create(cls):
                        return cls()
                """
        }
    )

    assert found == {
        ("app.py::App.make", "calls", "app.py::Response"),
        ("app.py::App.create", "calls", "app.py::App"),
    }


def test_what_is_tested_does_not_call_the_functions_of_its_tests():
    found = calls(
        {
            "src/runs.py": "def run(f):\n    f()\n\ndef work(): ...\n\ndef start():\n    run(work)\n",
            "tests/test_runs.py": "from runs import run\n\ndef mine(): ...\n\ndef test_run():\n    run(mine)\n",
        }
    )

    assert ("src/runs.py::run", "calls", "src/runs.py::work") in found
    assert ("src/runs.py::run", "calls", "tests/test_runs.py::mine") not in found


def test_a_function_outside_of_a_class_may_declare_what_it_calls_self():
    found = calls(
        {
            "app.py": """
                class App:
                    def check(self): ...

                def checked(f):
                    def run(self: App):
                        self.check()
                    return run
                """
        }
    )

    assert ("app.py::checked.run", "calls", "app.py::App.check") in found


def test_a_test_is_given_what_the_nearest_fixture_of_a_name_gives():
    fixture = "import pytest\nfrom app import {0}\n\n@pytest.fixture(scope='module')\ndef app():\n    return {0}()\n"
    files = {
        "src/app.py": "class App:\n    def get(self): ...\n\nclass Other(App):\n    def get(self): ...\n",
        "tests/conftest.py": fixture.format("App"),
        "tests/test_app.py": "def test_get(app):\n    app.get()\n\ndef helper(app):\n    app.get()\n",
        "tests/other/conftest.py": fixture.format("Other"),
        "tests/other/test_other.py": "def test_get(app):\n    app.get()\n",
    }

    found = {edge for edge in calls(files) if edge[2].endswith("get")}

    assert found == {
        ("tests/test_app.py::test_get", "calls", "src/app.py::App.get"),
        ("tests/other/test_other.py::test_get", "calls", "src/app.py::Other.get"),
    }


def test_a_function_has_the_methods_of_what_its_decorator_is_declared_to_make():
    found = calls(
        {
            "lines.py": """
                from typing import Callable, overload

                class Group:
                    def command(self, name): ...

                @overload
                def group(name: Callable) -> Group: ...
                @overload
                def group(name: str) -> Callable[[Callable], Group]: ...
                def group(name): ...

                @group
                def plain(): ...

                @group("named")
                def named(): ...

                def main():
                    plain.command("a")
                    named()

                def other():
                    named.command("b")
                """
        }
    )

    assert ("lines.py::main", "calls", "lines.py::Group.command") in found
    assert ("lines.py::main", "calls", "lines.py::named") in found
    assert ("lines.py::other", "calls", "lines.py::Group.command") in found


def test_the_body_of_a_class_does_not_know_by_its_name_what_the_class_inherits():
    found = calls(
        {
            "app.py": """
                from wsgi import Base

                class App:
                    def run(self): ...

                class Client(Base):
                    app: App

                    def open(self):
                        self.app.run()
                """
        }
    )

    assert found == {("app.py::Client.open", "calls", "app.py::App.run")}
