"""A file of a checkout that names the index to compare with."""


def test_a_file_of_a_checkout_selects_no_index_of_another_project(own):
    (other := own.user / "other").mkdir()
    (other / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "."\nname = "own"\n')
    (other / "guide.md").write_text("# Guide\n")
    (other / "layoffs-acquire-marmot.md").write_text("# Plan\n\nSeverance and layoffs.\n")
    assert own.run("index", cwd=other).returncode == 0
    (own.root / "q.csv").write_text("question,path\nseverance and layoffs,guide.md\n")
    (own.root / "better.toml").write_text('home = "../user/other/.docindex"\nmode = "bm25"\n')

    done = own.run("evaluate", "q.csv", "--compare", "better.toml")

    assert "layoffs-acquire-marmot" not in done.stdout
    assert done.returncode == 1
    assert "requires trust" in " ".join(done.stderr.split())
