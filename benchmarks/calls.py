"""Measure the precision and recall of call resolution.

    python -m benchmarks.calls [FOLDER] [-v]

FOLDER has labeled programs, in the format of tests/fixtures/calls; `-v` lists wrong and missing calls.
"""

import sys
from collections import defaultdict
from pathlib import Path

from tests.graph.calls import PROGRAMS, judge, programs


def main() -> None:
    """Print the results of all programs by language."""
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for program in programs(Path(folders[0]) if folders else PROGRAMS):
        found = judge(program)
        for name in (program.parent.name, "all"):
            for position, count in enumerate((1, found.found, len(found.wrong), found.needed)):
                totals[name][position] += count
        if "-v" in sys.argv:
            print(f"{program.parent.name}/{program.name}")
            for call in found.wrong:
                print(f"  wrong  {min(call.caller.names)} -> {min(call.callee.names)} ({call.line}: {call.resolution})")
            for caller, callee in found.missed:
                print(f"  missed {caller} -> {callee}")
    print(f"{'language':<12}{'programs':>9}{'calls':>7}{'precision':>11}{'recall':>8}")
    for name, (count, hits, wrong, needed) in sorted(totals.items(), key=lambda item: item[0] == "all"):
        print(f"{name:<12}{count:>9}{needed:>7}{hits / max(1, hits + wrong):>11.1%}{hits / max(1, needed):>8.1%}")


if __name__ == "__main__":
    main()
