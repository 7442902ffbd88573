(class_definition
  name: (_) @name
  class_parameters: (_)* @parameters
  body: (_)? @body) @definition.class
(trait_definition
  name: (_) @name
  class_parameters: (_)* @parameters
  body: (_)? @body) @definition.trait
(enum_definition
  name: (_) @name
  class_parameters: (_)* @parameters
  body: (_) @body) @definition.enum
(object_definition name: (_) @name body: (_)? @body) @definition.class
(package_object name: (_) @name body: (_) @body) @definition.module
(package_clause name: (_) @name body: (_) @body) @definition.module
(type_definition name: (_) @name) @definition.type

(extension_definition (function_definition name: (_) @name) @definition.method)
(extension_definition (function_declaration name: (_) @name) @definition.method)
(template_body (function_definition name: (_) @name) @definition.method)
(template_body (function_declaration name: (_) @name) @definition.method)
; The field `parameters` also holds type parameters.
(function_definition
  name: (_) @name
  (parameters)* @parameters
  return_type: (_)? @return
  body: (_) @body) @definition.function
(function_declaration
  name: (_) @name
  (parameters)* @parameters
  return_type: (_)? @return) @definition.function

(compilation_unit
  (extension_definition
    parameters: (parameters
      (parameter type: [(type_identifier) @owner (generic_type type: (type_identifier) @owner)]))
    [(function_definition) (function_declaration)] @definition)
  (#not-match? @owner "^[A-Z]$"))

; An instance is named after its type, unless it has its own name.
(given_definition
  name: (_) @name
  body: [(template_body) (with_template_body)] @body) @definition.impl
(given_definition
  return_type: [(type_identifier) @name (generic_type type: (_) @name)]
  body: [(template_body) (with_template_body)] @body) @definition.impl
(given_definition name: (_) @name return_type: (_)? @return body: (_) @body) @definition.property

; val name = (…) => …
(val_definition
  pattern: (identifier) @name
  value: (lambda_expression parameters: (_) @parameters)) @definition.function
(template_body (val_definition pattern: (identifier) @name) @definition.property)
(template_body (var_definition pattern: (identifier) @name) @definition.property)
(template_body (val_declaration name: (identifier) @name) @definition.property)
(template_body (var_declaration name: (identifier) @name) @definition.property)
(compilation_unit (val_definition pattern: (identifier) @name) @definition.property)
(compilation_unit (var_definition pattern: (identifier) @name) @definition.property)
(val_definition type: (function_type return_type: (_) @return) value: (lambda_expression)) @definition
(val_definition type: (_) @return) @definition
(var_definition type: (_) @return) @definition
(val_declaration type: (_) @return) @definition
(var_declaration type: (_) @return) @definition
(val_definition "=" @body) @definition
(var_definition "=" @body) @definition

(annotation) @decorator
((block_comment) @comment.doc (#match? @comment.doc "^/\\*\\*"))
((block_comment) @comment (#not-match? @comment "^/\\*\\*"))
(comment) @comment

; A path has no node of its own.
(import_declaration "import" . (_) @import (_)? @import .)

(export_declaration path: (identifier) @export .)
(export_declaration (namespace_selectors (identifier) @export))
(export_declaration (namespace_selectors (_ alias: (identifier) @export)))
(export_declaration (as_renamed_identifier alias: (identifier) @export))

(call_expression function: [(identifier) @call (generic_function function: (identifier) @call)])
((call_expression function: [(field_expression) @call (generic_function function: (field_expression) @call)])
  (#match? @call "^[\\w.]+$"))
((call_expression
  function: [
    (field_expression field: (_) @call) @_path
    (generic_function function: (field_expression field: (_) @call) @_path)
  ])
  (#not-match? @_path "^[\\w.]+$"))
(infix_expression operator: (identifier) @call)
(instance_expression [(type_identifier) @call (stable_type_identifier) @call (generic_type type: (_) @call)])
