(namespace_definition name: (_) @name body: (_) @body) @definition.module
(class_declaration name: (_) @name body: (_) @body) @definition.class
(interface_declaration name: (_) @name body: (_) @body) @definition.interface
(trait_declaration name: (_) @name body: (_) @body) @definition.trait
(enum_declaration name: (_) @name body: (_) @body) @definition.enum

(function_definition
  name: (_) @name
  parameters: (_) @parameters
  return_type: (_)? @return
  body: (_) @body) @definition.function

(method_declaration
  name: (_) @name
  parameters: (_) @parameters
  return_type: (_)? @return
  body: (_)? @body) @definition.method

; $name = function (…) {…}, $name = fn (…) => …
(assignment_expression
  left: (variable_name (name) @name)
  right: [
    (anonymous_function parameters: (_) @parameters return_type: (_)? @return body: (_) @body)
    (arrow_function parameters: (_) @parameters return_type: (_)? @return body: (_) @body)
  ]) @definition.function

(attribute_group) @decorator
(comment) @comment.doc

(namespace_use_declaration !body (namespace_use_clause . (_) @import))
(namespace_use_declaration (namespace_name) @import body: (_))
[
  (require_expression [
    (string) @import
    (encapsed_string) @import
    (binary_expression right: [(string) (encapsed_string)] @import)
  ])
  (require_once_expression [
    (string) @import
    (encapsed_string) @import
    (binary_expression right: [(string) (encapsed_string)] @import)
  ])
  (include_expression [
    (string) @import
    (encapsed_string) @import
    (binary_expression right: [(string) (encapsed_string)] @import)
  ])
  (include_once_expression [
    (string) @import
    (encapsed_string) @import
    (binary_expression right: [(string) (encapsed_string)] @import)
  ])
]

(function_call_expression function: [(name) (qualified_name) (variable_name)] @call)
(member_call_expression object: (_) @receiver name: (name) @call)
(nullsafe_member_call_expression object: (_) @receiver name: (name) @call)
(scoped_call_expression scope: (_) @receiver name: (name) @call)
(object_creation_expression [(name) (qualified_name)] @call)
