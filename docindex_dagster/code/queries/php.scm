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

(attribute_list) @decorator
(comment) @comment.doc

(namespace_use_declaration !body (namespace_use_clause . (_) @import))
(namespace_use_declaration (namespace_name) @import body: (_))
[
  (require_expression (string) @import)
  (require_once_expression (string) @import)
  (include_expression (string) @import)
  (include_once_expression (string) @import)
]
