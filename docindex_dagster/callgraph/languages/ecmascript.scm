; Captures are described in extract/statements.py.

(call_expression function: (_) @call arguments: (_) @arguments)
(new_expression constructor: (_) @new arguments: (_)? @arguments)
(decorator (_) @decorator)

(import_statement (import_clause (identifier) @import.alias @import.default) source: (_) @import.module)
(import_statement
  (import_clause (named_imports (import_specifier name: (_) @import.name alias: (_)? @import.alias)))
  source: (_) @import.module)
(import_statement (import_clause (namespace_import (identifier) @import.alias)) @import.space source: (_) @import.module)

(export_statement "*" @reexport.all . "from" source: (_) @reexport.module)
(export_statement (namespace_export (_) @reexport.alias) @reexport.space source: (_) @reexport.module)
(export_statement
  (export_clause (export_specifier name: (_) @reexport.name alias: (_)? @reexport.alias))
  source: (_) @reexport.module)
(export_statement !source (export_clause (export_specifier name: (_) @export.value alias: (_)? @export)))
(export_statement "default" @export.default declaration: (_ name: (_) @export.value))
(export_statement "default" @export.default value: (_) @export.value)

; import './a', import('./a'), require('./a'), require.resolve('./a'), vi.mock('./a'), new URL('./a', import.meta.url)
(import_statement . (string) @import.module @import.unnamed)
(call_expression function: (import) arguments: (arguments [
  (string) @import.module @import.unnamed
  (template_string . (string_fragment) @import.module .) @import.unnamed
]))
((call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module @import.unnamed .))
  (#eq? @_require "require"))
(call_expression
  function: (member_expression object: (identifier) @_loader property: (property_identifier) @_load)
  arguments: (arguments (string) @import.module @import.unnamed)
  (#any-of? @_loader "require" "vi" "vitest" "jest")
  (#any-of? @_load "resolve" "mock" "doMock" "unmock" "doUnmock" "importActual" "importMock" "requireActual" "requireMock"
    "unstable_mockModule" "setMock" "createMockFromModule"))
(new_expression
  constructor: (identifier) @_url
  arguments: (arguments . (string) @import.module @import.unnamed (member_expression))
  (#eq? @_url "URL"))

(variable_declarator
  name: (identifier) @import.alias
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module .)) @import.space
  (#eq? @_require "require"))
(variable_declarator
  name: (object_pattern (shorthand_property_identifier_pattern) @import.name)
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module .))
  (#eq? @_require "require"))
(variable_declarator
  name: (object_pattern (pair_pattern key: (_) @import.name value: (identifier) @import.alias))
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module .))
  (#eq? @_require "require"))

(assignment_expression
  left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
  right: [
    (object [(shorthand_property_identifier) @export @export.value (pair key: (_) @export value: (_) @export.value)])
    [(identifier) (new_expression) (call_expression) (member_expression) (function_expression) (class)] @export.value
  ]
  (#eq? @_module "module") (#eq? @_exports "exports"))
(assignment_expression
  left: (member_expression object: (identifier) @_exports property: (_) @export)
  right: (_) @export.value
  (#eq? @_exports "exports"))
(assignment_expression
  left: (member_expression
    object: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
    property: (_) @export)
  right: (_) @export.value
  (#eq? @_module "module") (#eq? @_exports "exports"))

; define(function () { return {a: 1} }), define({a: 1}), define(['exports'], function (exports) { exports.a = 1 })
(call_expression
  function: (identifier) @_define
  arguments: (arguments [
    (_ body: (statement_block (return_statement
      [(identifier) (object) (new_expression) (call_expression) (member_expression) (function_expression) (class)]
      @export.value)))
    (object) @export.value
  ])
  (#eq? @_define "define"))
(call_expression
  function: (identifier) @_define
  arguments: (arguments (array (string) @import.module @import.unnamed))
  (#any-of? @_define "define" "require" "requirejs"))

; module.exports = {...require('./a')}, Object.assign(module.exports, require('./a'))
(assignment_expression
  left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports)
  right: (object (spread_element
    (call_expression function: (identifier) @_require arguments: (arguments . (string) @reexport.module .)))) @reexport.all
  (#eq? @_module "module") (#eq? @_exports "exports") (#eq? @_require "require"))
(call_expression
  function: (member_expression object: (identifier) @_object property: (property_identifier) @_assign)
  arguments: (arguments
    . [(identifier) (member_expression)] @_exports
    (call_expression function: (identifier) @_require arguments: (arguments . (string) @reexport.module .)))
  (#eq? @_object "Object") (#eq? @_assign "assign") (#any-of? @_exports "exports" "module.exports")
  (#eq? @_require "require")) @reexport.all

(variable_declarator name: (identifier) @bind value: (_)? @bind.value)
(variable_declarator name: (array_pattern (identifier) @bind))
(variable_declarator
  name: (object_pattern [
    (shorthand_property_identifier_pattern) @bind
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @bind)
    (pair_pattern key: (property_identifier) @bind.key value: (identifier) @bind)
  ])
  value: (_) @bind.from)
(for_in_statement left: (object_pattern (shorthand_property_identifier_pattern) @bind))
(assignment_expression left: [(identifier) (member_expression) (subscript_expression)] @bind right: (_) @bind.value)
(for_in_statement left: (identifier) @bind right: (_) @bind.items)
(for_in_statement left: (array_pattern (identifier) @bind .) right: (_) @bind.items)

; Inheritance with functions: util.inherits(A, B), A.prototype = Object.create(B.prototype), A.prototype = new B(),
; Object.setPrototypeOf(A.prototype, B.prototype), Object.assign(A.prototype, mixin)
(call_expression
  function: [(identifier) @_inherits (member_expression property: (property_identifier) @_inherits)]
  arguments: (arguments . (_) @base.of . [(identifier) (member_expression)] @base .)
  (#any-of? @_inherits "inherits" "setPrototypeOf"))
(assignment_expression
  left: (member_expression property: (property_identifier) @_prototype) @base.of
  right: [
    (call_expression
      function: (member_expression property: (property_identifier) @_create)
      arguments: (arguments . [(identifier) (member_expression)] @base))
    (new_expression constructor: [(identifier) (member_expression)] @base)
  ]
  (#eq? @_prototype "prototype"))
(call_expression
  function: (member_expression object: (identifier) @_object property: (property_identifier) @_assign)
  arguments: (arguments
    . (member_expression property: (property_identifier) @_prototype) @base.of
    [(identifier) (member_expression)] @base.mixin)
  (#eq? @_object "Object") (#eq? @_assign "assign") (#eq? @_prototype "prototype"))

(method_definition "get" @property)
(arguments (function_expression name: (_) @hidden))

(return_statement (_) @return)
(arrow_function
  body: [
    (call_expression) (new_expression) (identifier) (member_expression) (parenthesized_expression) (await_expression)
    (class) (ternary_expression) (binary_expression)
  ] @return)
(arrow_function parameter: (identifier) @parameter)
