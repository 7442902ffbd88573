"""Haskell: application and operators, equations, modules with export lists, type classes."""

ONE_OF_TWO = "overrides what is called, one of 2"


def test_a_function_is_called_where_it_is_applied_by_juxtaposition_an_operator_or_a_section(calls):
    found = calls(
        {
            "A.hs": """
            module A where
            a x = first x
            b = second $ third 1
            c = first . second . third
            d x = x `first` 1
            e = first <$> [1]
            f x = x & third
            g = map (`second` 2) [1]
            h = input >>= third
            i = map first [1]
            first x = x
            second x = x
            third x = x
            input = getLine
            """
        }
    )

    assert found == {
        ("a", "first", "same file"),
        ("b", "second", "same file"),
        ("b", "third", "same file"),
        ("c", "first", "same file"),
        ("c", "second", "same file"),
        ("c", "third", "same file"),
        ("d", "first", "same file"),
        ("e", "first", "same file"),
        ("f", "third", "same file"),
        ("g", "second", "same file"),
        ("h", "third", "same file"),
    }


def test_an_operator_and_a_name_with_a_prime_are_functions(calls):
    found = calls(
        {
            "A.hs": """
            module A where
            infixr 5 <|.>
            (<|.>) :: Int -> Int -> Int
            a <|.> b = go' a
            x `plus` y = x
            go' n = n `plus` (n <|.> 1)
            """
        }
    )

    assert found == {
        ("<|.>", "go'", "same file"),
        ("go'", "plus", "same file"),
        ("go'", "<|.>", "same file"),
    }


def test_what_a_statement_is_runs(calls):
    found = calls(
        {
            "A.hs": """
            module A where
            main = do
              greet
              name <- ask
              when True greet
              twice other
            greet = print 1
            ask = getLine
            other = ask
            twice action = do
              action
              action
            """
        }
    )

    assert found == {
        ("main", "greet", "same file"),
        ("main", "ask", "same file"),
        ("main", "twice", "same file"),
    }


def test_what_a_pattern_names_is_no_function(calls):
    found = calls(
        {
            "A.hs": """
            module A where
            a (Just step) = step 1
            b = map (\\(step, x) -> step x) []
            c m = case m of
              Right step -> step 1
            d = do
              step <- load
              step 2
            e = [step x | (step, x) <- []]
            f = step 1
            step x = x
            load = return id
            """
        }
    )

    assert found == {("d", "load", "same file"), ("f", "step", "same file")}


def test_a_function_that_is_handed_on_is_called_by_each_equation(calls):
    found = calls(
        {
            "A.hs": """
            module A where
            pick _ [] = []
            pick keep (x : xs) = if keep x then x : pick keep xs else pick keep xs
            main = print (pick short words')
            partly = print (pick (longer 3) words')
            get = on "GET"
            on verb handler = handler verb
            routes = get echo
            short x = null x
            longer n x = length x > n
            echo x = x
            words' = []
            """
        }
    )

    assert {edge for edge in found if edge[2] == "argument of a caller"} == {
        ("pick", "short", "argument of a caller"),
        ("pick", "longer", "argument of a caller"),
        ("on", "echo", "argument of a caller"),
    }


def test_local_functions_hide_those_of_the_file(calls):
    found = calls(
        {
            "A.hs": """
            module A where
            run x = go x
              where go n = check n
                    check n = n
            check x = x
            other x = let half n = check n in half x
            """
        }
    )

    assert found == {
        ("run", "run.go", "same scope"),
        ("run.go", "run.check", "same scope"),
        ("other", "other.half", "same scope"),
        ("other.half", "check", "same file"),
    }


MODULES = {
    "src/Shop.hs": """
    module Shop (module Shop.Item, total, Shop.round, Inner.part) where
    import Prelude hiding (round)
    import Shop.Item
    import qualified Shop.Inner as Inner
    total x = secret x
    round x = x
    secret x = x
    """,
    "src/Shop/Item.hs": "module Shop.Item where\ncost x = x\n",
    "src/Shop/Inner.hs": "module Shop.Inner where\npart x = x\ncost x = x\n",
}


def test_a_module_gives_others_what_it_exports_and_passes_on(calls):
    found = calls(
        MODULES
        | {
            "app/Main.hs": """
            module Main where
            import Shop
            a = total 1
            b = cost 1
            c = part 1
            d = secret 1
            e = round 1
            """
        }
    )

    assert found == {
        ("src/Shop.hs::total", "src/Shop.hs::secret", "same file"),
        ("app/Main.hs::a", "src/Shop.hs::total", "imported name"),
        ("app/Main.hs::b", "src/Shop/Item.hs::cost", "imported name"),
        ("app/Main.hs::c", "src/Shop/Inner.hs::part", "imported name"),
        ("app/Main.hs::e", "src/Shop.hs::round", "imported name"),
    }


def test_imports_are_qualified_listed_or_hidden(calls):
    found = calls(
        {path: text for path, text in MODULES.items() if path != "src/Shop.hs"}
        | {
            "app/Main.hs": """
            module Main where
            import qualified Shop.Item as I
            import qualified Shop.Inner
            import Shop.Inner (part)
            a = I.cost 1
            b = Shop.Inner.cost 1
            c = part 1
            d = cost 1
            """,
            "app/Other.hs": """
            module Other where
            import Shop.Item hiding (other)
            import Shop.Inner hiding (cost)
            a = cost 1
            b = part 1
            """,
        }
    )

    assert found == {
        ("app/Main.hs::a", "src/Shop/Item.hs::cost", "imported name"),
        ("app/Main.hs::b", "src/Shop/Inner.hs::cost", "imported name"),
        ("app/Main.hs::c", "src/Shop/Inner.hs::part", "imported name"),
        ("app/Other.hs::a", "src/Shop/Item.hs::cost", "imported name"),
        ("app/Other.hs::b", "src/Shop/Inner.hs::part", "imported name"),
    }


def test_a_call_of_a_method_may_run_the_instances(calls, may_calls):
    program = {
        "Shape.hs": """
        module Shape (Shape (..), Circle) where
        class Shape a where
          area :: a -> Double
          name :: a -> String
          name x = describe (area x)
        data Circle = Circle
        data Square = Square
        instance Shape Circle where
          area c = help c
        instance Shape Square where
          area s = 1
        help x = x
        describe x = show x
        """,
        "Main.hs": """
        module Main where
        import Shape (Shape (..))
        a x = area x
        b x = help x
        """,
        "Other.hs": """
        module Other where
        import Shape (Shape (area))
        a x = area x
        b x = name x
        """,
    }

    assert calls(program) == {
        ("Shape.hs::Shape.name", "Shape.hs::Shape.area", "type of the receiver"),
        ("Shape.hs::Shape.name", "Shape.hs::describe", "same file"),
        ("Shape.hs::Circle.area", "Shape.hs::help", "same file"),
        ("Main.hs::a", "Shape.hs::Shape.area", "type of the receiver"),
        ("Other.hs::a", "Shape.hs::Shape.area", "type of the receiver"),
    }
    assert {edge for edge in may_calls(program) if edge[0] == "Main.hs::a"} == {
        ("Main.hs::a", "Shape.hs::Circle.area", ONE_OF_TWO),
        ("Main.hs::a", "Shape.hs::Square.area", ONE_OF_TWO),
    }
