(class_declaration
  "interface"
  (type_identifier) @name
  (class_body)? @body) @definition.interface

(class_declaration
  "enum"
  (type_identifier) @name
  (enum_class_body)? @body) @definition.enum

(class_declaration (type_identifier) @name (class_body)? @body) @definition.class
(class_declaration (primary_constructor "(" @parameters)) @definition
(object_declaration (type_identifier) @name (class_body)? @body) @definition.class
(enum_entry (simple_identifier) @name (class_body) @body) @definition.class
; Members of an unnamed companion object belong to its class.
(companion_object (type_identifier) @name (class_body)? @body) @definition.class
(type_alias (type_identifier) @name) @definition.type

(class_body (function_declaration (simple_identifier) @name) @definition.method)
(enum_class_body (function_declaration (simple_identifier) @name) @definition.method)

(function_declaration
  (simple_identifier) @name
  (function_value_parameters "(" @parameters)
  (function_body)? @body) @definition.function
(function_declaration (function_value_parameters) . ":" . (_) @return) @definition

(secondary_constructor
  "constructor" @name
  (function_value_parameters "(" @parameters)
  "{"? @body) @definition.method
(secondary_constructor ":" @body) @definition

; val name = { … }, val name = fun() {…}
(property_declaration
  (variable_declaration (simple_identifier) @name)
  "=" @body
  (lambda_literal (lambda_parameters)? @parameters)) @definition.function
(property_declaration
  (variable_declaration (simple_identifier) @name)
  (anonymous_function
    (function_value_parameters "(" @parameters)
    (function_body) @body)) @definition.function
(property_declaration (anonymous_function ":" . (_) @return)) @definition

(property_declaration
  (modifiers (property_modifier) @_modifier)
  (variable_declaration (simple_identifier) @name)
  (#eq? @_modifier "const")) @definition.constant
(class_body (property_declaration (variable_declaration (simple_identifier) @name)) @definition.property)
(enum_class_body (property_declaration (variable_declaration (simple_identifier) @name)) @definition.property)
(source_file (property_declaration (variable_declaration (simple_identifier) @name)) @definition.property)
(property_declaration (variable_declaration ":" . (_) @return)) @definition
(property_declaration [(property_delegate) (getter) (setter)] @body) @definition
((property_declaration "=" @body) @definition (#not-match? @definition "^[^=]*\\bconst val "))
; An accessor on its own line is not part of the declaration node.
((property_declaration) @definition . (getter) @part @body)
((property_declaration) @definition . (setter) @part @body)
((property_declaration) @definition . [(getter) (setter)] . [(getter) (setter)] @part)

; Extension functions. A single capital letter is a type parameter.
(source_file
  (_
    receiver: (receiver_type
      [
        (user_type (type_identifier) @owner .)
        (user_type (type_identifier) @owner . (type_arguments) .)
        (nullable_type (user_type (type_identifier) @owner .))
        (nullable_type (user_type (type_identifier) @owner . (type_arguments) .))
      ])) @definition
  (#not-match? @owner "^[A-Z]$"))

(annotation) @decorator
((multiline_comment) @comment.doc (#match? @comment.doc "^/\\*\\*"))
((multiline_comment) @comment (#not-match? @comment "^/\\*\\*"))
(line_comment) @comment

(import_header (identifier) @import)

(call_expression . (simple_identifier) @call)
((call_expression . (navigation_expression) @call) (#match? @call "^[\\w.]+$"))
((call_expression . (navigation_expression (navigation_suffix (simple_identifier) @call) .) @_path)
  (#not-match? @_path "^[\\w.]+$"))
