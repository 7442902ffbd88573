"""`docindex memory`: ingest, recall, forget, erase and list, as a user would."""

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.test_completion import completed


@pytest.fixture
def remember(run_indexed):
    """Run `docindex memory ARGUMENTS` in a folder whose library is indexed."""
    return lambda *arguments: run_indexed("memory", *arguments)


def write(remember, text, session="s", *options):
    done = remember("ingest", "--session", session, *options, "--json", text)
    assert done.code == 0, done.err
    return json.loads(done.out)


def texts(remember, query, *options):
    return [each["text"] for each in json.loads(remember("recall", query, "--json", *options).out)["messages"]]


def test_a_message_is_written_and_recalled_with_the_code_that_it_names(remember):
    written = remember("ingest", "--session", "s1", "--role", "user", "prime_pump() takes litres")
    found = remember("recall", "how many litres", "--code", "--impact")

    assert (written.code, found.code) == (0, 0)
    assert written.out.startswith("memory/main  s1  message ")
    assert "mentions library/manual pump.py prime_pump" in written.out
    assert found.out.startswith(" 1 memory/main  s1  user  20")
    assert "   mentions library/manual pump.py prime_pump: fresh, library/manual pump.py:1\n" in found.out
    assert "   prime_pump() takes litres\n" in found.out
    assert "manual/pump.py:1" in found.out


def test_the_text_comes_from_standard_input(remember, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"17 FAILED\n\xff two gaskets\n")))

    assert remember("ingest", "--session", "s", "--role", "tool", "--tool", "pytest").code == 0

    assert texts(remember, "gaskets", "--role", "tool") == ["17 FAILED\n\ufffd two gaskets\n"]
    assert texts(remember, "gaskets", "--role", "user") == []


def test_a_blank_text_is_not_written(remember):
    done = remember("ingest", "--session", "s", " ")
    assert (done.code, done.out) == (0, "the text is blank: nothing was stored\n")
    assert remember("domains").out == "no messages yet\n"


def test_domains_are_apart_and_recalled_together_where_they_are_named(remember):
    for domain in ("memory/main", "project/acme"):
        write(remember, f"a nut of {domain}", "s", "--domain", domain)

    assert texts(remember, "nut") == ["a nut of memory/main"]
    assert texts(remember, "nut", "--domain", "project/acme") == ["a nut of project/acme"]
    both = texts(remember, "nut", "--domain", "memory/main", "--domain", "project/acme")
    assert sorted(both) == ["a nut of memory/main", "a nut of project/acme"]
    assert remember("domains").out == "memory/main\nproject/acme\n"
    assert json.loads(remember("domains", "--json").out) == ["memory/main", "project/acme"]


def test_the_domain_that_is_not_named_is_that_of_the_settings(remember, tmp_path):
    with (tmp_path / "docindex.toml").open("a") as file:
        file.write('\n[memory]\ndomain = "project/acme"\n')
    assert write(remember, "x")["domain"] == "project/acme"


def test_recall_is_narrowed_by_session_and_time(remember):
    for session in ("a", "b"):
        write(remember, f"a nut of {session}", session)

    assert texts(remember, "nut", "--session", "b") == ["a nut of b"]
    assert texts(remember, "nut", "--as-of", "2020-01-31T12:00:00Z") == []
    assert len(texts(remember, "nut", "--top-k", "1")) == 1


def test_what_is_forgotten_is_erased_with_a_receipt(remember, tmp_path):
    write(remember, "a secret quokka", "secret")
    write(remember, "a wombat")
    assert remember("fold").out.startswith("memory/main: 2 messages (2 added, 0 removed), 2 chunks, ")

    done = remember("forget", "--session", "secret", "--erase")

    assert done.code == 0
    forgot, erased = done.out.splitlines()
    assert forgot == "memory/main: forgot 1 message (session secret)"
    assert erased.startswith("memory/main: erased 1 message; read ")
    files = [file for file in (tmp_path / ".docindex" / "memory").rglob("*") if file.is_file()]
    assert not [file for file in files if b"quokka" in file.read_bytes()]
    assert texts(remember, "quokka wombat") == ["a wombat"]


def test_a_message_is_forgotten_by_its_id_and_erased_later(remember):
    one = write(remember, "a quokka")["message_id"]

    forgotten = json.loads(remember("forget", "--message", one, "--json").out)
    receipt = json.loads(remember("erase", "--json").out)

    assert forgotten == {
        "forgotten": {"domain": "memory/main", "what": "message", "value": one, "messages": 1},
        "receipt": None,
    }
    assert len(receipt["forgotten"]) == 1
    assert remember("recall", "quokka").out == "no matching messages\n"


def test_a_whole_domain_is_forgotten_by_who_means_it(remember):
    write(remember, "a quokka")

    asked = remember("forget", "--everything")
    assert (asked.code, "pass --yes to confirm" in asked.err) == (1, True)
    assert texts(remember, "quokka") == ["a quokka"]

    assert remember("forget", "--everything", "--yes").out == "memory/main: forgot 1 message (domain)\n"
    assert texts(remember, "quokka") == []


def test_the_status_lists_all_domains(remember):
    assert remember("status").out.startswith("no messages yet: store one with `docindex memory ingest`")
    for domain in ("memory/main", "project/acme"):
        write(remember, "a nut", "s", "--domain", domain)

    status = remember("status").out.splitlines()
    found = json.loads(remember("status", "--domain", "project/acme", "--json").out)

    assert [line.split()[:3] for line in status[1:]] == [["memory/main", "1", "1"], ["project/acme", "1", "1"]]
    assert [(one["domain"], one["messages"], one["tail"]) for one in found] == [("project/acme", 1, 1)]


def test_the_export_is_a_line_of_json_for_each_message(remember, tmp_path):
    for text in ("first", "second"):
        write(remember, text)

    printed = remember("export").out
    remember("export", "--output", str(tmp_path / "all.jsonl"))

    assert [json.loads(line)["message"]["text"] for line in printed.splitlines()] == ["first", "second"]
    assert Path(tmp_path / "all.jsonl").read_text() == printed


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("ingest", "x"), 2, "--session"),
        (("ingest", "--session", "a\nb", "x"), 1, "invalid session"),
        (("ingest", "--session", "s", "--domain", "../etc", "x"), 1, "invalid domain"),
        (("recall", " "), 1, "the query is empty"),
        (("recall", "x", "--role", "king"), 2, "'king' is not one of 'user'"),
        (("recall", "x", "--as-of", "yesterday"), 2, "2026-01-31"),
        (("forget",), 2, "--everything"),
        (("forget", "--session", "s", "--everything"), 2, "--everything"),
        (("fold", "--domain", "memory/.."), 1, "invalid domain"),
    ],
)
def test_mistakes_are_said_in_a_line(remember, arguments, code, problem):
    done = remember(*arguments)
    assert done.code == code
    assert problem in done.err
    assert "Traceback" not in done.err


def test_domains_are_completed(remember):
    for domain in ("memory/main", "project/acme"):
        write(remember, "a nut", "s", "--domain", domain)

    assert completed("docindex memory recall x --domain pro") == ["project/acme"]
    assert completed("docindex mcp --domain mem") == ["memory/main"]
    assert completed("docindex memory f") == ["forget", "fold"]


@pytest.mark.parametrize("command", ["mcp", "serve"])
def test_a_server_needs_a_domain_to_read_another_one(run_indexed, command):
    without = run_indexed(command, "--may-read", "project/acme")
    wrong = run_indexed(command, "--domain", "everything")

    assert (without.code, "requires --domain" in without.err) == (2, True)
    assert (wrong.code, "invalid domain 'everything'" in wrong.err) == (1, True)


@pytest.mark.parametrize("command", ["recall pump", "status", "export", "fold", "erase", "forget --session s"])
def test_a_domain_that_is_not_there_is_named_and_not_made(remember, command):
    remember("ingest", "--session", "s", "the pump is blue")

    refused = remember(*command.split(), "--domain", "memory/nowhere")

    assert refused.code == 1
    assert "domain memory/nowhere not found: the domains are memory/main" in " ".join(refused.err.split())
    assert remember("domains").out.split() == ["memory/main"]


def test_a_date_is_its_whole_day(remember):
    remember("ingest", "--session", "s", "--tool", "pytest", "the pump is blue")
    today = f"{datetime.now(UTC):%Y-%m-%d}"

    assert "the pump is blue" in remember("recall", "pump", "--as-of", today).out
    assert "the pump is blue" not in remember("recall", "pump", "--as-of", "2026-01-31").out


def test_what_a_tool_answers_has_the_role_of_a_tool(remember):
    remember("ingest", "--session", "s", "--tool", "pytest", "the pump is blue")

    [found] = json.loads(remember("recall", "pump", "--json").out)["messages"]

    assert found["role"] == "tool"
