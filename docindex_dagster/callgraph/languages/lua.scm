; Captures are described in extract/statements.py.

(function_call name: (_) @call arguments: (_) @arguments)
((function_call
  name: (identifier) @_protected
  arguments: (arguments . [(identifier) (dot_index_expression)] @call))
  (#any-of? @_protected "pcall" "xpcall"))

(assignment_statement
  (variable_list . name: (identifier) @import.alias)
  (expression_list
    . value: (function_call
      name: (identifier) @_require
      arguments: (arguments . (string content: (_) @import.module) .)))
  (#eq? @_require "require"))
(assignment_statement ; local ok, alias = pcall(require, "name")
  (variable_list . (_) . name: (identifier) @import.alias)
  (expression_list
    . value: (function_call
      arguments: (arguments . (identifier) @_require . (string content: (_) @import.module) .)))
  (#eq? @_require "require"))
((function_call
  name: (identifier) @_require
  arguments: (arguments . (string content: (_) @import.module) .))
  (#any-of? @_require "require" "dofile" "loadfile"))
((function_call ; pcall(require, "name")
  arguments: (arguments . (identifier) @_require . (string content: (_) @import.module) .))
  (#eq? @_require "require"))

; The value that a file returns to the files that require it.
(chunk (return_statement (expression_list . [
  (identifier) (dot_index_expression) (function_call) (binary_expression) (parenthesized_expression)
] @export.value)) @export.default)
(chunk (return_statement (expression_list
  . (function_call arguments: (arguments . (identifier) @export.value)) @export.default)))
(chunk (return_statement (expression_list
  . (table_constructor (field name: (identifier) @export value: (_) @export.value)))))

(assignment_statement
  (variable_list . name: [(identifier) (dot_index_expression) (bracket_index_expression)] @bind)
  (expression_list . value: (_) @bind.value))
(assignment_statement
  (variable_list . (_) . name: [(identifier) (dot_index_expression)] @bind)
  (expression_list . (_) . value: (_) @bind.value))
(assignment_statement
  (variable_list . (_) . (_) . name: [(identifier) (dot_index_expression)] @bind)
  (expression_list . (_) . (_) . value: (_) @bind.value))
(assignment_statement
  (variable_list . (_) . (_) . (_) . name: [(identifier) (dot_index_expression)] @bind)
  (expression_list . (_) . (_) . (_) . value: (_) @bind.value))
(variable_declaration (variable_list name: (identifier) @bind))
((variable_declaration (assignment_statement
  (variable_list (_) . name: (identifier) @bind)
  (expression_list . value: (_) @_value)))
  (#not-match? @_value "^pcall\\(require"))
(for_generic_clause
  (variable_list . (identifier) . (identifier) @bind .)
  (expression_list . (_) @bind.items))
(for_generic_clause (variable_list . (identifier) @bind))
(for_numeric_clause name: (identifier) @bind)

; setmetatable(object, Class)
((function_call
  name: (identifier) @_setmetatable
  arguments: (arguments . [(identifier) (dot_index_expression)] @bind . (_) @bind.value .))
  (#eq? @_setmetatable "setmetatable"))
; table.insert(items, item)
((function_call
  name: (dot_index_expression) @_insert
  arguments: (arguments
    . [(identifier) (dot_index_expression) (bracket_index_expression)] @bind @bind.filled
    (_) @bind.value .))
  (#eq? @_insert "table.insert"))

; Table fields: setmetatable({ name = value }, Class), name = { name = value }
((function_call
  name: (identifier) @_setmetatable
  arguments: (arguments . (table_constructor) @arguments . [(identifier) (dot_index_expression)] @fill .))
  (#eq? @_setmetatable "setmetatable"))
(assignment_statement
  (variable_list . name: [(identifier) (dot_index_expression)] @fill)
  (expression_list . value: (table_constructor) @arguments))
(assignment_statement
  (variable_list . name: [(identifier) (dot_index_expression)] @fill)
  (expression_list . value: (function_call
    name: (identifier) @_setmetatable
    arguments: (arguments . (table_constructor) @arguments)))
  (#eq? @_setmetatable "setmetatable"))

; Derived = class("Derived", Base), Derived = Base:extend()
(assignment_statement
  (variable_list . name: (_) @base.of .)
  (expression_list . value: (function_call name: (_) @_class arguments: (arguments (identifier) @base)) .)
  (#match? @_class "(class|Class|extend|inherit|derive|subclass)$"))
(assignment_statement
  (variable_list . name: (_) @base.of .)
  (expression_list
    . value: (function_call name: (method_index_expression table: (identifier) @base method: (_) @_extend)) .)
  (#match? @_extend "^(class|extend|inherit|derive|subclass)$"))

(function_declaration parameters: (parameters name: (identifier) @parameter))
(function_definition parameters: (parameters name: (identifier) @parameter))
(function_declaration parameters: (parameters (vararg_expression) @parameter @parameter.rest))

(return_statement (expression_list . (_) @return))

; A local function is visible only in its file.
(_ local_declaration: (function_declaration name: (identifier) @hidden))
(variable_declaration (assignment_statement
  (variable_list . name: (identifier) @hidden .)
  (expression_list . value: (function_definition))))
