; The grammar uses the field `name` for types too, so the patterns recognize names by the preceding node.

(class_declaration
  declaration_kind: ["class" "actor"]
  name: (_) @name
  body: (_) @body) @definition.class
(class_declaration declaration_kind: "struct" name: (_) @name body: (_) @body) @definition.struct
(class_declaration declaration_kind: "enum" name: (_) @name body: (_) @body) @definition.enum
(protocol_declaration name: (type_identifier) @name body: (_) @body) @definition.interface

; An extension, and the methods in it, use the name of the extended type.
(class_declaration
  declaration_kind: "extension"
  name: (user_type . (type_identifier) @name . (type_arguments)? .)
  body: (_) @body) @definition.impl
(class_declaration
  declaration_kind: "extension"
  name: (_) @name
  body: (_) @body) @definition.impl

(typealias_declaration "typealias" . name: (_) @name) @definition.type
(associatedtype_declaration "associatedtype" . name: (_) @name) @definition.type

(function_declaration
  "func" . name: _ @name
  "(" @parameters
  body: (_)? @body) @definition.function
(protocol_function_declaration "func" . name: _ @name "(" @parameters) @definition.method
(function_declaration "->" . name: (_) @return) @definition
(protocol_function_declaration "->" . name: (_) @return) @definition

(init_declaration name: "init" @name "(" @parameters body: (_)? @body) @definition.method
(deinit_declaration "deinit" @name body: (_) @body) @definition.method
(subscript_declaration
  "subscript" @name
  "(" @parameters
  "->" . name: (_) @return
  (computed_property)? @body) @definition.method

(macro_declaration
  "macro" . (simple_identifier) @name
  "(" @parameters
  (macro_definition)? @body) @definition.macro
(macro_declaration "->" . (_) @return) @definition

; let name = { … }
(property_declaration
  name: (pattern bound_identifier: (_) @name)
  value: (lambda_literal
    "{" @body
    type: (lambda_function_type
      (lambda_function_type_parameters)? @parameters)?)) @definition.function
(property_declaration value: (lambda_literal type: (lambda_function_type "->" . (_) @return))) @definition

(source_file
  (property_declaration
    (value_binding_pattern mutability: "let")
    name: (pattern bound_identifier: (_) @name)) @definition.constant)
(source_file (property_declaration name: (pattern bound_identifier: (_) @name)) @definition.property)
(class_body (property_declaration name: (pattern bound_identifier: (_) @name)) @definition.property)
(enum_class_body (property_declaration name: (pattern bound_identifier: (_) @name)) @definition.property)
(protocol_property_declaration name: (pattern bound_identifier: (_) @name)) @definition.property
(property_declaration
  (type_annotation (function_type "->" . (_) @return))
  value: (lambda_literal)) @definition
(property_declaration (type_annotation ":" . (_) @return)) @definition
(protocol_property_declaration (type_annotation ":" . (_) @return)) @definition
(property_declaration computed_value: (_) @body) @definition
(class_body (property_declaration "=" @body) @definition)
(enum_class_body (property_declaration "=" @body) @definition)

(attribute) @decorator
((comment) @comment.doc (#match? @comment.doc "^///"))
((comment) @comment (#not-match? @comment "^///"))
((multiline_comment) @comment.doc (#match? @comment.doc "^/\\*\\*"))
((multiline_comment) @comment (#not-match? @comment "^/\\*\\*"))

(import_declaration (identifier) @import)

; Require the parenthesis, since the same node is used for subscripts.
(call_expression . (simple_identifier) @call (call_suffix [(value_arguments "(") (lambda_literal)]))
((call_expression . (navigation_expression) @call (call_suffix [(value_arguments "(") (lambda_literal)]))
  (#match? @call "^[\\w.]+$"))
((call_expression
  . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call)) @_path
  (call_suffix [(value_arguments "(") (lambda_literal)]))
  (#not-match? @_path "^[\\w.]+$"))
(call_expression . (prefix_expression target: (simple_identifier) @call))
(constructor_expression (user_type (type_identifier) @call))
