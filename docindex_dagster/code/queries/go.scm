(function_declaration
  name: (_) @name
  parameters: (_) @parameters
  result: (_)? @return
  body: (_)? @body) @definition.function

(method_declaration
  receiver: (parameter_list
    (parameter_declaration
      type: [
        (type_identifier) @owner
        (generic_type type: (type_identifier) @owner)
        (pointer_type (type_identifier) @owner)
        (pointer_type (generic_type type: (type_identifier) @owner))
      ]))
  name: (_) @name
  parameters: (_) @parameters
  result: (_)? @return
  body: (_)? @body) @definition.method

(type_spec
  name: (_) @name
  type: (struct_type (field_declaration_list) @body)) @definition.struct

(type_spec
  name: (_) @name
  type: (interface_type "{" @body)) @definition.interface

(type_spec name: (_) @name) @definition.type
(type_alias name: (_) @name) @definition.type

(method_elem
  name: (_) @name
  parameters: (_) @parameters
  result: (_)? @return) @definition.method

; var name = func(…) {…}, name := func(…) {…}
(var_spec
  . name: (_) @name
  value: (expression_list
    . (func_literal parameters: (_) @parameters result: (_)? @return body: (_) @body) .)) @definition.function
(short_var_declaration
  left: (expression_list . (identifier) @name .)
  right: (expression_list
    . (func_literal parameters: (_) @parameters result: (_)? @return body: (_) @body) .)) @definition.function

; name = func(…) {…}
(assignment_statement
  left: (expression_list . (identifier) @name .)
  right: (expression_list
    . (func_literal parameters: (_) @parameters result: (_)? @return body: (_) @body) .)) @definition.function

(var_declaration . "var" . (var_spec) @wrapped) @wrapper
; Without parentheses, the declaration belongs to its only type.
(type_declaration . "type" . [(type_spec) (type_alias)] @wrapped) @wrapper
(comment) @comment.doc

(import_spec path: (_) @import)

(call_expression function: [(identifier) (selector_expression)] @call)
; name[T](…), which the grammar does not distinguish from a call of an element or from a conversion.
(call_expression function: (index_expression operand: [(identifier) (selector_expression)] @call))
(type_conversion_expression type: (generic_type type: (_) @call))

; Names starting with a capital letter are exported. A single combined pattern takes three times as long, since it has many
; steps, all tried on each node of the file.
(source_file (function_declaration name: (_) @export) (#match? @export "^[A-Z]"))
(source_file (type_declaration [(type_spec name: (_) @export) (type_alias name: (_) @export)]) (#match? @export "^[A-Z]"))
(source_file (const_declaration (const_spec name: (_) @export)) (#match? @export "^[A-Z]"))
(source_file (var_declaration (var_spec name: (_) @export)) (#match? @export "^[A-Z]"))
