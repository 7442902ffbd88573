"""SQL scripts in batches: T-SQL's GO, Oracle's slash, MySQL's DELIMITER."""

from textwrap import dedent

import pytest

from docindex_dagster.code.extraction import extract
from docindex_dagster.code.parsers import parse


def symbols(code: str) -> list[str]:
    source = dedent(code).lstrip().encode()
    found = extract(parse(source, "sql"), source, "sql").symbols
    return [f"{one.kind} {one.qualified_name} {one.start_line}-{one.end_line}" for one in found]


@pytest.mark.parametrize("go", ["GO", "go", "  Go  ", "GO 5", "GO -- done", "GO;"])
def test_tables_views_and_procedures_of_t_sql_stand_between_go(go):
    script = f"""
    CREATE TABLE dbo.Pots (Id INT)
    {go}
    CREATE TABLE dbo.Kilns (Id INT)
    {go}
    CREATE VIEW dbo.HotKilns AS SELECT Id FROM dbo.Kilns
    {go}
    CREATE PROCEDURE dbo.FireKiln @Id INT AS
    BEGIN
      UPDATE dbo.Kilns SET Id = @Id
    END
    {go}
    """

    assert symbols(script) == [
        "struct dbo.Pots 1-1",
        "struct dbo.Kilns 3-3",
        "type dbo.HotKilns 5-5",
        "function dbo.FireKiln 7-10",
    ]


def test_a_script_of_a_database_has_brackets_and_settings():
    script = """
    SET ANSI_NULLS ON
    GO
    CREATE TABLE [dbo].[Pots](
      [Id] [int] IDENTITY(1,1) NOT NULL,
      [Name] [nvarchar](max) NULL
    ) ON [PRIMARY]
    GO
    -- what goes on
    CREATE OR ALTER PROC [dbo].[Fire Kiln] @Id INT AS
    BEGIN
      SET NOCOUNT ON;
      UPDATE dbo.Kilns SET Id = @Id;
    END
    GO
    PRINT 'GO'
    GO
    CREATE TABLE Kilns (Id INT)
    """

    assert symbols(script) == ["struct dbo.Pots 3-6", "function dbo.Fire Kiln 8-13", "struct Kilns 17-17"]


def test_a_slash_ends_what_oracle_reads():
    script = """
    CREATE TABLE pots (id NUMBER(10) PRIMARY KEY);
    CREATE OR REPLACE PROCEDURE fire_kiln(p_id IN NUMBER) IS
    BEGIN
      UPDATE kilns SET heat = heat
        / 2 WHERE id = p_id;
    END fire_kiln;
    /
    CREATE VIEW hot AS SELECT id FROM kilns
    /
    CREATE TRIGGER cool AFTER INSERT ON kilns BEGIN NULL; END;
    /
    """

    assert symbols(script) == ["struct pots 1-1", "function fire_kiln 2-6", "type hot 8-8", "function cool 10-10"]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("CREATE OR REPLACE PROCEDURE fire IS\nBEGIN\n  UPDATE kilns SET heat = 1;\nEND;\n/\n", "function fire 1-4"),
        ("CREATE PROCEDURE fire(n NUMBER) AS\nBEGIN\n  NULL;\nEND fire;\n/\n", "function fire 1-4"),
        ("create function heat(n number) return number is\nbegin\n  return n * 2;\nend;\n/\n", "function heat 1-4"),
    ],
)
def test_a_file_of_oracle_may_hold_one_routine_alone(script, found):
    assert symbols(script) == [found]


@pytest.mark.parametrize("delimiter", ["$$", "//", ";;", "|"])
def test_mysql_sets_the_delimiter(delimiter):
    script = f"""
    CREATE TABLE pots (id INT PRIMARY KEY);
    DELIMITER {delimiter}
    CREATE PROCEDURE fire_kiln(IN p_id INT)
    BEGIN
      UPDATE kilns SET id = p_id;
      SELECT 1;
    END{delimiter}
    CREATE FUNCTION heat(p INT) RETURNS INT DETERMINISTIC
    BEGIN
      RETURN p + 1;
    END {delimiter}
    delimiter ;
    CREATE TABLE kilns (id INT);
    """

    assert symbols(script) == [
        "struct pots 1-1",
        "function fire_kiln 3-7",
        "function heat 8-11",
        "struct kilns 13-13",
    ]


def test_go_in_a_comment_or_a_string_ends_nothing():
    script = """
    CREATE TABLE a (x INT)
    /*
    GO
    */
    GO
    INSERT INTO a VALUES ('
    GO
    CREATE TABLE none (x INT)
    ')
    GO
    CREATE TABLE b (y INT)
    """

    assert [one.split()[1] for one in symbols(script)] == ["a", "b"]


def test_a_script_without_batches_is_read_as_before():
    assert symbols("CREATE TABLE a (x INT);\nCREATE VIEW v AS SELECT x / 2 FROM a;\n") == ["struct a 1-1", "type v 2-2"]


@pytest.mark.parametrize(
    "text", ["GO\n" * 10_000, "'" * 10_001, "/*" * 10_000, "create proc a \nGO\n" * 2_000, "GO" + " " * 10_000 + "x"]
)
def test_any_text_is_read_without_an_error(text):
    assert isinstance(symbols(text), list)
