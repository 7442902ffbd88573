"""Mechanisms of the call graph: what each does, where it is, and what it returns when disabled."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from docindex_dagster.callgraph.extract.statements import BASES, MARKS
from docindex_dagster.callgraph.ir import THIS, UNKNOWN
from docindex_dagster.callgraph.languages import RULES as RULES_OF_LANGUAGES
from tests.mutants.mutant import Argument, Mutant

NOTHING: object = iter(())  # for functions that return an iterator
NONE = frozenset[str]()
PARTS = "callgraph.resolver"
SCOPES, SELVES, IMPORTS = f"{PARTS}.scopes", f"{PARTS}.scopes", f"{PARTS}.imports"
NAMESPACES, HIERARCHY, CLASSES = f"{PARTS}.namespaces", f"{PARTS}.hierarchy", f"{PARTS}.classes"
MEMBERS, RESULTS = f"{PARTS}.members", f"{PARTS}.results"
TYPES, ARGUMENTS, CALLS = f"{PARTS}.types", f"{PARTS}.arguments", f"{PARTS}.calls"
SPACES, OVERLOADS, BUILTINS = f"{PARTS}.header_visibility", f"{PARTS}.overloads", f"{PARTS}.builtins"
UNITS = "callgraph.units"
READ, LANGUAGE = "callgraph.extract", "callgraph.languages"
PLACES, LIBRARY, STATEMENTS = f"{READ}.captured_statements", f"{READ}.library", f"{READ}.statements"
VARIABLES, EXPRESSIONS, DECLARATIONS = f"{READ}.variables", f"{READ}.expression_rules", f"{READ}.declarations"
SWIFT, SCALA = f"{LANGUAGE}.swift", f"{LANGUAGE}.scala"
RULES = "callgraph.languages:RULES"


def without(rule: str, nothing: Any = NONE) -> Any:
    """Return the rules of all languages without one rule."""
    return {language: replace(rules, **{rule: nothing}) for language, rules in RULES_OF_LANGUAGES.items()}


def without_capture(captures: Mapping[str, Any], capture: str) -> Any:
    """Return a table of captures without one capture."""
    return {name: made for name, made in captures.items() if name != capture}


MUTANTS = (
    # Scopes.
    Mutant("scopes", "a name is looked for in the scopes around it", f"{SCOPES}:_in_scope", None),
    Mutant("unique names", "a block hides variables for its own length", f"{READ}.renaming:region_of", None),
    Mutant("written functions", "functions that are elements of a collection", f"{SCOPES}:function_named"),
    Mutant("bare names", "a name of Ruby may be a call", f"{SCOPES}:name_or_call"),
    Mutant("names of itself", "`this`, `super`, `self`, `crate`", f"{SELVES}:of_itself", None),
    Mutant(
        "class expressions",
        "a class without a name is the function's around it",
        f"{LANGUAGE}.ecmascript:_unnamed_class",
    ),
    Mutant("self of Python", "the first parameter is the object or the class", f"{READ}.file:with_this", Argument(0)),
    Mutant("this", "the object of a method", f"{SELVES}:_this"),
    Mutant("owner", "the class whose member a place is in", f"{HIERARCHY}:owner", None),
    Mutant("variables", "a variable is what is assigned to it", f"{SCOPES}:bound", []),
    Mutant(
        "declared or given", "of C, C++ and PHP: a variable by its type or value", f"{CLASSES}:declared_or_given", []
    ),
    Mutant(
        "hidden names",
        "names of function expressions are seen in them alone",
        f"{STATEMENTS}:MARKS",
        without_capture(MARKS, "hidden"),
    ),
    Mutant(
        "defaults",
        "what a default calls runs outside of the function",
        f"{STATEMENTS}:MARKS",
        without_capture(MARKS, "outer"),
    ),
    # Imports.
    Mutant("imports", "a name is that of what is imported", f"{IMPORTS}:imported"),
    Mutant("modules", "what a module has under a name", f"{IMPORTS}:_of_module"),
    Mutant("exports", "what a file says that it exports", f"{IMPORTS}:_exported", []),
    Mutant("offered names", "what a file defines, for others", f"{IMPORTS}:_provided", []),
    Mutant("passed on", "a file passes on all of another one", f"{IMPORTS}:_reexported", []),
    Mutant("modules below", "a package has the modules below it", f"{IMPORTS}:_submodule", []),
    Mutant("folders of Go", "the files of a folder that is imported", f"{IMPORTS}:_in_folder"),
    Mutant("modules of a folder", "a folder without __init__.py is a package", f"{IMPORTS}:_submodules", NOTHING),
    Mutant("packages of Go", "a package is named as its files say", f"{IMPORTS}:_package_name", ""),
    Mutant("neighbours", "files of a folder of Go share their names", f"{LANGUAGE}.go:_of_neighbours"),
    Mutant("shared names", "files of a program of Ruby, or a namespace of PHP", f"{IMPORTS}:shared"),
    Mutant("loaded files", "a function of Ruby needs its file to be required", f"{IMPORTS}:_is_loaded", True),
    Mutant("local imports", "what a function or module imports for itself", f"{IMPORTS}:locally_imported", []),
    Mutant("paths of Rust", "the steps of a path that is imported", f"{IMPORTS}:_of_path"),
    Mutant("words of paths", "`self`, `super` and `crate`", f"{IMPORTS}:path_word"),
    Mutant("macros of Rust", "a macro is the nearest of its name", f"{LANGUAGE}.rust:_macros"),
    Mutant("macro arguments", "what stands in a macro is read as code", f"{PLACES}:_parse_unread", None),
    Mutant("computed exports", "any export of a module whose name is computed", f"{IMPORTS}:all_exported"),
    Mutant("modules of Python", "the file of a dotted name", f"{LANGUAGE}.python:find"),
    Mutant("nearest modules", "of several files of one name the nearest", "callgraph.modules:nearest", NOTHING),
    Mutant("modules by paths", "the file of a name by where it lies", "callgraph.modules:Search.find"),
    Mutant("near names", "relative names, and those of the library", "callgraph.modules:Search.is_near", False),
    Mutant("modules of ECMAScript", "the file of a path or package", f"{LANGUAGE}.ecmascript:find"),
    Mutant("aliases of compilers", "paths and baseUrl of tsconfig", f"{LANGUAGE}.ecmascript_configs:_of_options", []),
    Mutant("extended configurations", "what tsconfig extends", f"{LANGUAGE}.ecmascript_configs:_Reader._base", None),
    Mutant("entries of packages", "what package.json exports", f"{LANGUAGE}.ecmascript_configs:_entries"),
    Mutant("names in packages", "what package.json names inside", f"{LANGUAGE}.ecmascript_configs:_own_names"),
    Mutant("modules loaded later", "React.lazy and its like", f"{LIBRARY}:loaded", None),
    Mutant("renamed crates", "crates under other names", f"{LANGUAGE}.rust:_renamed"),
    Mutant("modules of Go", "the folder of a package", f"{LANGUAGE}.go:find"),
    Mutant("modules of Rust", "the file of a module or crate", f"{LANGUAGE}.rust:find"),
    Mutant("using directives", "`using namespace`", f"{UNITS}:Unit.directives", ()),
    Mutant("included names", "names of C and C++ by namespaces and includes", f"{SPACES}:looked_up", []),
    Mutant("visible files", "what includes lead to, through others", f"{IMPORTS}:visible", NONE),
    Mutant("names in namespaces", "of Java, Kotlin and C#", f"{NAMESPACES}:outermost"),
    Mutant("namespaces", "what a namespace or class has", f"{NAMESPACES}:of_namespace"),
    Mutant("namespaces around", "of C#: what is in the namespaces around", f"{NAMESPACES}:own_namespaces"),
    Mutant("full names", "of Java and C#: a name behind its namespace", f"{NAMESPACES}:in_namespace", []),
    Mutant("names beyond", "of PHP: namespaces, and functions outside of all", f"{SPACES}:beyond", []),
    # Class hierarchies.
    Mutant("base classes", "what a class is made from", f"{HIERARCHY}:direct_bases"),
    Mutant("super", "what the class inherits", f"{SELVES}:_super"),
    Mutant("super of Ruby", "the method of the same name", f"{SELVES}:_inherited_method"),
    Mutant("super of modules", "the method behind a module in those that include it", f"{SELVES}:_next_method"),
    Mutant(
        "mixins", "members before those of base classes", f"{STATEMENTS}:BASES", without_capture(BASES, "base.mixin")
    ),
    Mutant("overriding", "a method that a class calls on itself", f"{CALLS}:_overriding"),
    Mutant("overriding by use", "not where only objects of others run it", f"{CALLS}:_may_run_in", True),
    Mutant("dynamic dispatch", "the methods that may run instead", f"{CALLS}:implementations"),
    Mutant("held classes", "of Python: a variable may hold one below", f"{CALLS}:_is_from_variable", False),
    Mutant("interfaces of Go", "types that have all methods of one", f"{CALLS}:_structural"),
    Mutant("calls of super", "nothing overrides what is named by its class", f"{CALLS}:_is_of_super", False),
    Mutant("derived classes", "the classes that name a class as a base", f"{HIERARCHY}:derived"),
    Mutant("parts of classes", "classes of Ruby that are opened again", f"{HIERARCHY}:_reopened"),
    Mutant("impls", "impls of Rust in other files", f"{HIERARCHY}:impls"),
    Mutant("traits for the library", "a trait adds methods to a type of the library", f"{MEMBERS}:_trait_method", []),
    Mutant("deref", "an object of Rust that stands for another", f"{LANGUAGE}.rust:_of_deref", []),
    Mutant("makers of Ruby", "`new` of a class, or its own", f"{MEMBERS}:_factory"),
    Mutant(
        "companions",
        "a companion of Kotlin is named by its class",
        f"{STATEMENTS}:BASES",
        without_capture(BASES, "base.companion"),
    ),
    Mutant("constants of enums", "a constant of an enumeration is an object of it", f"{MEMBERS}:_constant"),
    Mutant("bodies of constants", "`super` in a constant of an enumeration", f"{SELVES}:_is_in_enum_constant", False),
    Mutant("classes without name", "what a function's class inherits", f"{HIERARCHY}:bases_of_unnamed"),
    Mutant("literals", "objects that are written out have methods", f"{MEMBERS}:of_literal"),
    Mutant("records", "what is under a name in an object, or spread", f"{MEMBERS}:_of_record"),
    Mutant("functions as objects", "what is put into a function", f"{MEMBERS}:_of_function"),
    Mutant("constructors as functions", "`new` of a function", f"{RESULTS}:new", []),
    # Fields and types.
    Mutant("fields", "what an attribute is", f"{CLASSES}:_fields", []),
    Mutant("declared fields", "what the body of a class says", f"{CLASSES}:_declared_fields", []),
    Mutant("assigned attributes", "what methods assign", f"{UNITS}:_attributes", {}),
    Mutant("fields from outside", "what others put into a field", f"{CLASSES}:_set_elsewhere"),
    Mutant("filled structs", "of Go and Rust: objects that are written out", f"{CLASSES}:_filled"),
    Mutant("assigned fields", "of Go and Rust: assignments elsewhere", f"{CLASSES}:_assigned"),
    Mutant("assigned in C", "what is put into a field of a struct", f"{SPACES}:assigned"),
    Mutant("functions in fields", "functions that are written in a field", f"{CLASSES}:_with_methods", Argument(3)),
    Mutant("type names", "a declared type", f"{TYPES}:typed", []),
    Mutant("types of C++", "the type of a name, in namespaces and includes", f"{SPACES}:included_types"),
    Mutant("bounds", "a type parameter of Java, Kotlin and C#", f"{TYPES}:_bound_of", None),
    Mutant("arguments of bases", "what a base class was made for", f"{TYPES}:_given_types"),
    Mutant("types of objects", "type parameters of an object in its fields", f"{TYPES}:held_by", {}),
    Mutant("function types", "a type of functions with a name", f"{TYPES}:function_type", None),
    Mutant("tested types", "what something was tested to be", f"{MEMBERS}:tested"),
    Mutant("casts", "a cast says what something is", f"{EXPRESSIONS}:_cast", UNKNOWN),
    Mutant("patterns of Rust", "parts of what a pattern matches", f"{LANGUAGE}.rust:_matched", UNKNOWN),
    Mutant("destructuring", "parts of an object by their names", f"{VARIABLES}:_member_of", UNKNOWN),
    Mutant("several results", "of Go: each goes to a variable", f"{VARIABLES}:assigned_part", UNKNOWN),
    Mutant("either type", "one of several declared types", f"{READ}.types:_one_of", None),
    Mutant("objects or functions", "what is declared as either", f"{TYPES}:may_be_function", False),
    Mutant("bounds of Python", "what a type parameter is bound by", f"{LIBRARY}:bounded", None),
    Mutant("parts of tuples", "of Python: each goes to a name", f"{VARIABLES}:unpacked", UNKNOWN),
    Mutant("wrappers", "types whose members are those of what they hold", RULES, without("wrappers", {})),
    Mutant("leading arguments", "Result holds its first argument", "callgraph.rules:first_of_result", Argument(1)),
    Mutant("methods that give itself", "clone, borrow, tap and their like", RULES, without("identity_methods")),
    Mutant("objects that run", "`__call__` and its like", RULES, without("runs", ())),
    Mutant("types in comments", "@param, @return and @var", f"{STATEMENTS}:_documented", NOTHING),
    Mutant("made by its place", "`new()` of C# is of the declared type", f"{LANGUAGE}.csharp:_new", UNKNOWN),
    Mutant("type arguments of calls", "of Kotlin: what they say is made", f"{LANGUAGE}.kotlin:_call", None),
    Mutant("objects of Kotlin", "`object : Type`", f"{LANGUAGE}.kotlin:_object", UNKNOWN),
    # Return types and collections.
    Mutant("branches", "either side of a conditional", f"{EXPRESSIONS}:_one_of", UNKNOWN),
    Mutant("arms", "any arm of a match", f"{EXPRESSIONS}:_branches", UNKNOWN),
    Mutant("returns", "what a function returns", f"{RESULTS}:returned"),
    Mutant("returned parameters", "what another caller gives is not returned", f"{RESULTS}:_is_called_once", True),
    Mutant("elements", "what a collection holds", f"{RESULTS}:elements"),
    Mutant("elements of bases", "a collection that a type of Go is", f"{RESULTS}:_of_generic_bases", []),
    Mutant("entries of tables", "helpers in a table are none of its entries", f"{RESULTS}:_entries", ()),
    Mutant("whole tables", "a table that is something else besides", f"{RESULTS}:_is_complete", True),
    Mutant("put into collections", "append and its like", f"{UNITS}:contents_of"),
    Mutant("put into fields of C++", "push_back and its like", f"{UNITS}:contents_outside"),
    Mutant("methods of collections", "what methods of the library give", f"{BUILTINS}:result_of"),
    Mutant("results of Rust", "what methods of standard types give", f"{LANGUAGE}.rust_std:rust_result"),
    Mutant("plain results", "texts and numbers of the library", f"{BUILTINS}:plain_result", None),
    Mutant("mapped elements", "what a mapping makes of all elements", f"{LIBRARY}:mapped", None),
    Mutant("copies", "sorted and its like give the same", f"{LIBRARY}:last", UNKNOWN),
    Mutant("tables of C", "functions in rows", f"{DECLARATIONS}:_rows", NOTHING),
    Mutant("filled structs of C", "what is put into fields in their order", f"{DECLARATIONS}:_filled", NOTHING),
    # Callbacks.
    Mutant("callback arguments", "what a function gives to the one it is given", f"{ARGUMENTS}:to_callback"),
    Mutant("passed callbacks", "what a function of the program gives", f"{ARGUMENTS}:_passed"),
    Mutant("types of callbacks", "what a declared callback takes", f"{ARGUMENTS}:_for_last_parameter"),
    Mutant("library callbacks", "methods of the library give elements", f"{BUILTINS}:gives_elements", False),
    Mutant("given lambdas", "what a lambda is given", f"{READ}.callees:lambda_argument", UNKNOWN),
    Mutant("given blocks", "what a block of Ruby is given", f"{VARIABLES}:_block_argument", UNKNOWN),
    Mutant("folds", "what a fold begins with", f"{READ}.callees:_start_of", UNKNOWN),
    Mutant("handed functions", "what those give that are given a function", f"{ARGUMENTS}:_by_takers"),
    Mutant("given functions", "functions that are given for a declared parameter", f"{ARGUMENTS}:_given_functions"),
    Mutant(
        "functions in variables",
        "a callback of Java that is called by its method",
        f"{PARTS}.resolver:_functions_held",
    ),
    Mutant("callers of functions", "call, apply, run and Invoke", RULES, without("call_methods")),
    Mutant("bound methods", "bind and to_proc", RULES, without("bind_methods")),
    Mutant("iteration", "of Ruby: what each gives, others give", f"{LANGUAGE}.ruby:_block_arguments"),
    Mutant("receivers of lambdas", "names in a lambda of Kotlin", f"{LANGUAGE}.kotlin:_name", None),
    Mutant("this of lambdas", "`this` in a lambda of Kotlin", f"{LANGUAGE}.kotlin:_this", THIS),
    Mutant("it", "`it` in a lambda of Kotlin", f"{LANGUAGE}.kotlin:_it", None),
    Mutant("several receivers", "names of the receivers around", f"{NAMESPACES}:implicit"),
    Mutant("lambdas with equal names", "parameters of one name in several lambdas", f"{PLACES}:_numbered", Argument(0)),
    # Callers.
    Mutant("parameters", "what a parameter is", f"{ARGUMENTS}:parameter"),
    Mutant("callers", "what the calls of a function give", f"{ARGUMENTS}:passed_arguments"),
    Mutant("constructors", "a constructor is called by its class", f"{ARGUMENTS}:_is_constructor", False),
    Mutant("values of tests", "what tests give stays there", f"{ARGUMENTS}:_is_of_test", False),
    Mutant("wanted parameters", "a literal of a declared type", f"{ARGUMENTS}:_by_literal"),
    Mutant("decorators", "what a decorator makes of a function", f"{LANGUAGE}.python:_decorated"),
    Mutant("overloads of decorators", "of several declarations each counts", f"{LANGUAGE}.python:_is_overload", False),
    Mutant("properties", "a method that is read as an attribute", f"{CLASSES}:_is_property", False),
    Mutant("accessors", "`get` of a property of ECMAScript", f"{STATEMENTS}:MARKS", without_capture(MARKS, "property")),
    Mutant("fixtures", "pytest's fixtures", f"{LANGUAGE}.python:_fixture_of", None),
    # Overloads and extensions.
    Mutant("overloads", "of functions of one name the one that fits", f"{CALLS}:chosen", Argument(3)),
    Mutant("inherited overloads", "where those of the class take too little", f"{CALLS}:_overloads"),
    Mutant("fit of literals", "a literal for a declared type", f"{OVERLOADS}:_literal_fit", 0),
    Mutant("fit of types", "a value for a declared type", f"{OVERLOADS}:_type_fit", 0),
    Mutant("aliases of the library", "a type that stands for one of the library", f"{OVERLOADS}:_aliased", []),
    Mutant("arithmetic", "the type of a sum", f"{LIBRARY}:arithmetic", UNKNOWN),
    Mutant("extensions", "functions that are added to a type", f"{NAMESPACES}:extensions", NOTHING),
    Mutant("extensions by type", "only those of the type", f"{NAMESPACES}:_extends", True),
    Mutant("extensions by import", "only those that are seen", f"{NAMESPACES}:_sees", True),
    Mutant("receivers", "`this` in a function that is added", f"{LANGUAGE}.java:receiver", None),
    # Swift.
    Mutant("labels", "arguments have the names that a function asks for", f"{OVERLOADS}:has_labels_of", True),
    Mutant("modules of Swift", "the folder of a target is a module", f"{SWIFT}:_module_of", ""),
    Mutant("extensions of the library", "members that are added to its types", f"{MEMBERS}:_extension_member", []),
    Mutant("peeking", "`first` of a collection, without brackets", f"{MEMBERS}:_peeked", ()),
    Mutant(
        "optionals", "what may be nothing is read like what it holds", RULES, without("has_optionals", nothing=False)
    ),
    Mutant("numbered parameters", "`$0` in a closure", f"{SWIFT}:_name", None),
    Mutant("subscripts", "a subscript is no call", f"{SWIFT}:_call", None),
    Mutant("members without types", "`.red()` of the type that is wanted", f"{SWIFT}:_operator", UNKNOWN),
    Mutant("cases of enums", "what a case was made with", f"{SWIFT}:_pattern", UNKNOWN),
    # Scala.
    Mutant("apply", "a class or object is called by its name", f"{CLASSES}:apply_targets", ()),
    Mutant("unwritten apply", "the apply of a class that nobody wrote", f"{CLASSES}:_applied_by_default", []),
    Mutant("classes and objects", "members of a class, and of the object", f"{CLASSES}:_companions", Argument(2)),
    Mutant("bare calls", "a method that takes nothing, without brackets", f"{CALLS}:_read", ()),
    Mutant("results of bare calls", "and what it gives", RULES, without("has_bare_calls", nothing=False)),
    Mutant("relative imports", "from a package around", RULES, without("has_relative_imports", nothing=False)),
    Mutant("curried functions", "arguments in several brackets", f"{SCALA}:_result", None),
    Mutant("placeholders", "`_` in an argument", f"{SCALA}:_placeholder", UNKNOWN),
    Mutant("patterns of Scala", "parts of what a pattern matches", f"{SCALA}:_matched", UNKNOWN),
    Mutant("mapped in Scala", "what a function makes of elements", f"{SCALA}:_mapped", None),
    Mutant("joined in Scala", "`::` and its like", f"{SCALA}:_joined", None),
    Mutant("found instances", "`summon` and casts", f"{SCALA}:_generic", None),
    # C and C++.
    Mutant("names by typedef", "the name behind a struct stands beside it", f"{UNITS}:_lifted", Argument(0)),
    Mutant("bodies", "a declared method is where its body is", f"{SPACES}:with_body", Argument(1)),
    Mutant("linked bodies", "of several bodies the one that knows the declaration", f"{SPACES}:_linked", Argument(2)),
    Mutant("seen definitions", "what a file includes, or declares", f"{SPACES}:_visible", Argument(3)),
    Mutant("variables of files", "a variable of another file", f"{SPACES}:_variable", []),
    Mutant("stored functions", "what functions put into a variable", f"{SPACES}:_assigned_outside", []),
    Mutant("templates", "what a template is used with", f"{SPACES}:_given_types", []),
    Mutant("template parameters", "names that only templates know", f"{SPACES}:template_parameters", NONE),
    Mutant("inherited types", "a type in a base class", f"{SPACES}:_inherited_types", []),
    Mutant("tests with fixtures", "TEST_F is a member of its fixture", f"{PARTS}.hoisting:_WITH_FIXTURE", NONE),
    Mutant("members by namespaces", "a method outside of its class", f"{SPACES}:enclosing_space", Argument(2)),
    Mutant("macros of C", "a macro, where it is included", f"{SPACES}:_macros", []),
    Mutant("objects in C++", "a declaration that constructs an object", f"{DECLARATIONS}:_is_construction", False),
    # Elixir and Haskell.
    Mutant("pipes", "what a call of Elixir is given, and what is piped to it", f"{LANGUAGE}.elixir:_listed", ()),
    Mutant("ignored places", "heads and types are no calls", f"{PLACES}:_without_ignored", Argument(0)),
    Mutant("paths of Elixir", "imports in their module, by paths", RULES, without("has_path_imports", False)),
    Mutant("names of functions", "what is called is no variable", RULES, without("has_function_names", False)),
    Mutant("clauses", "definitions of one name are one function", f"{LANGUAGE}.elixir:_is_clause", False),
    Mutant("protocols", "an implementation has the name of its type", RULES, without("has_protocols", False)),
    Mutant("implementations", "a function of a protocol is none of the module", f"{CLASSES}:_is_implementing", False),
    Mutant("fields of structs", "a struct has fields alone, a module functions", f"{CLASSES}:_may_have", True),
    Mutant("extensions of modules", "`use` of Elixir, `ClassMethods` of Ruby", RULES, without("extension", "")),
    Mutant("bases of Elixir", "a module has nothing of what it uses", RULES, without("inherits", True)),
    Mutant("callbacks of modules", "a module in a variable has its callbacks", f"{CALLS}:_declared"),
    Mutant("fields without types", "what structs are written with", RULES, without("has_untyped_fields", False)),
    Mutant("names that are left out", "`hiding` and `except`", f"{UNITS}:_left_out", frozenset[tuple[str, str, str]]()),
    Mutant(
        "applications", "one argument after the other, and operators", f"{LANGUAGE}.haskell:_applied_arguments", NOTHING
    ),
    Mutant("export lists", "a module gives others what it lists", RULES, without("has_export_lists", False)),
    Mutant("free methods", "a method of a type class needs no class", f"{LANGUAGE}.haskell:_free_methods", []),
    Mutant("equations", "each names the parameters anew", f"{LANGUAGE}.haskell:_with_equations", Argument(0)),
    Mutant("currying", "what has too few arguments waits for others", RULES, without("is_curried", False)),
    Mutant("waiting functions", "what callers of what waits give", f"{ARGUMENTS}:_from_callers_of_result", NOTHING),
    Mutant("wildcards", "all of a module or class, but what is left out", f"{IMPORTS}:of_wildcard", []),
)
