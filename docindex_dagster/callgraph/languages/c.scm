; Captures are described in extract/statements.py.

(call_expression function: (_) @call arguments: (_)? @arguments)
(preproc_include path: [(string_literal) (system_lib_string)] @import.module) @import.all

(declaration) @declared
(field_declaration) @declared
(function_definition declarator: (_) @signature)
(type_definition
  type: [
    (struct_specifier name: (_) @bind.type) (union_specifier name: (_) @bind.type) (type_identifier) @bind.type
  ]
  declarator: [(type_identifier) @bind (pointer_declarator declarator: (type_identifier) @bind)])
(preproc_def name: (_) @bind value: (_) @bind.value (#match? @bind.value "^\\s*[A-Za-z_]\\w*\\s*$"))
(assignment_expression
  left: [(identifier) (field_expression) (subscript_expression)] @assigned
  operator: "="
  right: [
    (identifier) (pointer_expression) (conditional_expression) (field_expression) (call_expression) (subscript_expression)
    (cast_expression)
  ] @assigned.value)
(return_statement
  [(identifier) (pointer_expression) (conditional_expression) (field_expression) (call_expression) (subscript_expression)
    (cast_expression)] @return)
