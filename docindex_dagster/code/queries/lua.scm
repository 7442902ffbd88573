(function_declaration
  name: (identifier) @name
  parameters: (_) @parameters
  body: (_)? @body) @definition.function

(function_declaration
  name: (dot_index_expression table: (_) @scope field: (_) @name)
  parameters: (_) @parameters
  body: (_)? @body) @definition.function

(function_declaration
  name: (method_index_expression table: (_) @owner method: (_) @name)
  parameters: (_) @parameters
  body: (_)? @body) @definition.method

; name = function () … end
(assignment_statement
  (variable_list
    . name: [
      (identifier) @name
      (dot_index_expression table: (_) @scope field: (_) @name)
      (bracket_index_expression table: (_) @scope field: (string) @name)
    ] .)
  (expression_list
    . value: (function_definition parameters: (_) @parameters body: (_)? @body) .)) @definition.function

; name = { field = function () … end }
(assignment_statement
  (variable_list . name: [(identifier) (dot_index_expression)] @scope .)
  (expression_list
    . value: (table_constructor
      (field
        name: [(identifier) (string)] @name
        value: (function_definition parameters: (_) @parameters body: (_)? @body)) @definition.function) .))

(field
  name: [(identifier) (string)] @name
  value: (function_definition parameters: (_) @parameters body: (_)? @body)) @definition.function

; local NAME <const> = …
(assignment_statement
  (variable_list . name: (identifier) @name . attribute: (attribute (identifier) @_attribute) .)
  (#eq? @_attribute "const")) @definition.constant

(variable_declaration (assignment_statement) @wrapped) @wrapper
(comment) @comment.doc

(function_call
  name: (identifier) @_function
  arguments: (arguments . (string) @import)
  (#any-of? @_function "require" "dofile" "loadfile"))
(function_call ; pcall(require, "name")
  arguments: (arguments . (identifier) @_function . (string) @import)
  (#eq? @_function "require"))

(function_call name: (identifier) @call)
(function_call
  name: (dot_index_expression) @call
  (#match? @call "^[A-Za-z0-9_.]+$"))
(function_call
  name: (dot_index_expression field: (_) @call) @_path
  (#not-match? @_path "^[A-Za-z0-9_.]+$"))
(function_call name: (method_index_expression method: (_) @call))
