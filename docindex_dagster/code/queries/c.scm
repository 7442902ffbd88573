; Patterns shared by C and C++. A declarator wraps the name in parts of its type: `char **name(…)`.

(function_definition
  (type_qualifier "const")? @return
  . type: (_) @return
  declarator: (function_declarator
    declarator: (_) @name
    parameters: (_) @parameters)
  body: (_)? @body) @definition.function

(function_definition
  (type_qualifier "const")? @return
  . type: (_) @return
  declarator: (pointer_declarator
    "*" @return
    declarator: (function_declarator
      declarator: (_) @name
      parameters: (_) @parameters))
  body: (_)? @body) @definition.function

(function_definition
  (type_qualifier "const")? @return
  . type: (_) @return
  declarator: (pointer_declarator
    "*" @return
    declarator: (pointer_declarator
      "*" @return
      declarator: (function_declarator
        declarator: (_) @name
        parameters: (_) @parameters)))
  body: (_)? @body) @definition.function

; TEST(name) {…}, where a macro expands to the function head
(function_definition
  type: (type_identifier) @name
  declarator: (parenthesized_declarator) @parameters
  body: (_) @body) @definition.function

(struct_specifier name: (_) @name body: (_) @body) @definition.struct
(union_specifier name: (_) @name body: (_) @body) @definition.union
(enum_specifier name: (_) @name body: (_) @body) @definition.enum

(type_definition
  type: (struct_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @definition.struct
(type_definition
  type: (union_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @definition.union
(type_definition
  type: (enum_specifier !name body: (_) @body)
  declarator: (type_identifier) @name) @definition.enum

(type_definition declarator: (type_identifier) @name) @definition.type
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @definition.type
(type_definition
  declarator: (function_declarator
    declarator: (parenthesized_declarator
      (pointer_declarator declarator: (type_identifier) @name)))) @definition.type

(preproc_function_def
  name: (_) @name
  parameters: (_) @parameters
  value: (_)? @body) @definition.macro

(type_definition
  type: [(struct_specifier name: (_)) (union_specifier name: (_)) (enum_specifier name: (_))] @wrapped) @wrapper
(attribute_declaration) @decorator
(comment) @comment.doc

(preproc_include path: [(system_lib_string) (string_literal)] @import)

(call_expression function: [(identifier) (field_expression)] @call)
