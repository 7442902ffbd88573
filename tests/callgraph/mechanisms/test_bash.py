"""Bash: functions as commands, sourced files, and functions named by arguments and variables."""


def test_functions_are_commands_wherever_they_are_run(calls):
    found = calls(
        {
            "app.sh": """
            log::info() { echo "$1"; }
            build() { inner() { :; }; }
            check() {
              local build=1
              if ! build; then log::info "build failed"; fi
              out=$(inner | grep x)
              [[ $(build) ]] && echo "`log::info x`"
              command log::info
              "$build"
              none
            }
            trap 'check 1; exit' EXIT
            trap - INT
            """
        }
    )

    assert found == {
        ("check", "build", "same file"),
        ("check", "log.info", "same file"),
        ("check", "build.inner", "same file"),
        ("app.sh", "check", "same file"),
    }


def test_functions_of_files_that_are_loaded(calls):
    found = calls(
        {
            "bin/app.sh": """
            DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
            source "$DIR/../lib/log.sh"
            . "${0%/*}"/more.sh
            source ./none.sh
            hook() { :; }
            main() { log x; more; lost; check; }
            main
            """,
            "bin/more.sh": "more() { log y; deep; }\ndeep() { :; }\n",
            "lib/log.sh": "source lib/deep.sh\nlog() { hook; }\n",
            "lib/deep.sh": "deep() { :; }\ncheck() { :; }\n",
            "bin/other.sh": "log() { :; }\nlost() { :; }\nmore\n",
        }
    )

    assert found == {
        ("bin/app.sh", "bin/app.sh::main", "same file"),
        ("bin/app.sh::main", "lib/log.sh::log", "imported name"),
        ("bin/app.sh::main", "bin/more.sh::more", "imported name"),
        ("bin/app.sh::main", "lib/deep.sh::check", "imported name"),
        ("bin/more.sh::more", "lib/log.sh::log", "same package"),
        ("bin/more.sh::more", "bin/more.sh::deep", "same file"),
        ("lib/log.sh::log", "bin/app.sh::hook", "same package"),
    }


def test_each_file_that_loads_another_one_may_have_what_that_calls(calls):
    found = calls(
        {
            "lib.sh": "run() { hook; step; }\nstep() { :; }\n",
            "one.sh": "source lib.sh\nhook() { :; }\n",
            "two.sh": "source parts.sh\nsource lib.sh\nstep() { :; }\n",
            "parts.sh": "hook() { :; }\n",
            "none.sh": "hook() { :; }\n",
        }
    )

    assert found == {
        ("lib.sh::run", "lib.sh::step", "same file"),
        ("lib.sh::run", "one.sh::hook", "same package"),
        ("lib.sh::run", "parts.sh::hook", "same package"),
    }


def test_files_of_a_pattern_may_each_have_the_function(calls):
    found = calls(
        {
            "app.sh": """
            for file in "$HERE"/parts/*.sh; do
              source "$file"
              install
            done
            """,
            "parts/git.sh": "install() { :; }\n",
            "parts/vim.sh": "install() { link; }\n",
            "other/more.sh": "install() { :; }\nlink() { :; }\n",
            "run.sh": "for file in parts/*.sh; do bash $file; done\ninstall\n",
        }
    )

    assert found == {
        ("app.sh", "parts/git.sh::install", "imported name"),
        ("app.sh", "parts/vim.sh::install", "imported name"),
    }


def test_a_function_is_given_by_its_name(calls):
    found = calls(
        {
            "app.sh": """
            build() { :; }
            check() { :; }
            deploy() { :; }
            retry() { local count=$1; shift; until "$@"; do sleep 1; done; }
            step() {
              local name="$1" run=$2
              shift 2
              $run "$@"
            }
            twice() { retry 2 "${@:2}"; }
            all() { for one in "$@"; do "$one"; done; }
            each() { for one; do "$one"; done; }
            retry 3 build now
            step build check a b
            twice check deploy
            all build check
            each deploy
            """
        }
    )

    assert found == {
        ("retry", "build", "argument of a caller"),
        ("retry", "deploy", "argument of a caller"),
        ("step", "check", "argument of a caller"),
        ("twice", "retry", "same file"),
        ("all", "build", "argument of a caller"),
        ("all", "check", "argument of a caller"),
        ("each", "deploy", "argument of a caller"),
        ("app.sh", "retry", "same file"),
        ("app.sh", "step", "same file"),
        ("app.sh", "twice", "same file"),
        ("app.sh", "all", "same file"),
        ("app.sh", "each", "same file"),
    }


def test_a_function_is_named_by_a_variable_or_an_array(calls):
    found = calls(
        {
            "app.sh": """
            add() { :; }
            remove() { :; }
            show() { :; }
            late() { :; }
            help() { :; }
            declare -A commands=([add]=add ["rm"]="remove")
            commands[late]=late
            steps=(show 'help')
            run() { "${commands[$1]}" "$2"; }
            go() { for step in "${steps[@]}"; do $step; done; }
            first() { local command=${1:-show}; "$command"; "add_$1"; }
            words() { for command in add none; do "$command"; done; }
            """
        }
    )

    assert found == {
        ("run", "add", "element of a collection"),
        ("run", "remove", "element of a collection"),
        ("run", "late", "element of a collection"),
        ("go", "show", "element of a collection"),
        ("go", "help", "element of a collection"),
        ("first", "show", "same file"),
        ("words", "add", "same file"),
    }
