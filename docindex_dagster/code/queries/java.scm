(class_declaration name: (_) @name body: (_) @body) @definition.class
(record_declaration name: (_) @name parameters: (_) @parameters body: (_) @body) @definition.class
(interface_declaration name: (_) @name body: (_) @body) @definition.interface
(annotation_type_declaration name: (_) @name body: (_) @body) @definition.interface
(enum_declaration name: (_) @name body: (_) @body) @definition.enum

(method_declaration
  type: (_) @return
  name: (_) @name
  parameters: (_) @parameters
  body: (_)? @body) @definition.method

; Type name = new Type(…) { … }
(field_declaration
  declarator: (variable_declarator
    name: (_) @owner
    value: (object_creation_expression (class_body (method_declaration name: (_) @name) @definition.method))))

; NAME(…) { … } in an enum
(enum_constant
  name: (_) @owner
  body: (class_body (method_declaration name: (_) @name) @definition.method))

(constructor_declaration
  name: (_) @name
  parameters: (_) @parameters
  body: (_) @body) @definition.method

(compact_constructor_declaration name: (_) @name body: (_) @body) @definition.method

(annotation_type_element_declaration type: (_) @return name: (_) @name) @definition.method

; Type name = (…) -> …
(variable_declarator
  name: (_) @name
  value: (lambda_expression parameters: (_) @parameters body: (_) @body)) @definition.function

(field_declaration declarator: (variable_declarator value: (lambda_expression)) @wrapped . ";") @wrapper
(local_variable_declaration declarator: (variable_declarator value: (lambda_expression)) @wrapped . ";") @wrapper
[(annotation) (marker_annotation)] @decorator
[(line_comment) (block_comment)] @comment.doc

(import_declaration [(identifier) (scoped_identifier)] @import)

(method_invocation object: (_)? @receiver name: (identifier) @call)
(object_creation_expression type: [
  (type_identifier) @call
  (scoped_type_identifier) @call
  (generic_type . (_) @call)
])
