; Additions to c.scm for C++.

(class_specifier name: (_) @name body: (_) @body) @definition.class
(namespace_definition name: (_) @name body: (_) @body) @definition.module
(alias_declaration name: (_) @name) @definition.type
(concept_definition name: (_) @name) @definition.type

; Constructors and destructors have no return type.
(function_definition
  declarator: (function_declarator
    declarator: (_) @name
    parameters: (_) @parameters)) @definition.function
(function_definition (field_initializer_list) @body) @definition
(function_definition body: (_) @body) @definition

(function_definition
  (type_qualifier "const")? @return
  . type: (_) @return
  declarator: (reference_declarator
    ["&" "&&"] @return
    (function_declarator
      declarator: (_) @name
      parameters: (_) @parameters))
  body: (_)? @body) @definition.function

(function_definition
  type: (_) @return
  declarator: (pointer_declarator
    "*" @return
    declarator: (reference_declarator
      "&" @return
      (function_declarator declarator: (_) @name parameters: (_) @parameters)))
  body: (_)? @body) @definition.function

(function_definition
  declarator: (operator_cast declarator: (abstract_function_declarator parameters: (_) @parameters)) @name
  body: (_)? @body) @definition.function

(function_definition
  declarator: (qualified_identifier
    name: (operator_cast declarator: (abstract_function_declarator parameters: (_) @parameters))) @name
  body: (_)? @body) @definition.function

(function_definition
  declarator: (function_declarator
    (trailing_return_type (_) @return))) @definition

; Methods defined outside the class body.
(field_declaration_list
  (field_declaration
    declarator: (function_declarator
      declarator: (_) @name
      parameters: (_) @parameters
      (trailing_return_type (_) @return))) @definition.method)
(field_declaration_list
  (field_declaration
    (type_qualifier "const")? @return
    . type: (_) @return
    declarator: [
      (function_declarator declarator: (_) @name parameters: (_) @parameters)
      (pointer_declarator
        "*" @return
        declarator: (function_declarator declarator: (_) @name parameters: (_) @parameters))
      (reference_declarator
        ["&" "&&"] @return
        (function_declarator declarator: (_) @name parameters: (_) @parameters))
    ]) @definition.method)
(field_declaration_list
  [
    (declaration
      type: (_)? @return
      declarator: (function_declarator declarator: (_) @name parameters: (_) @parameters)) @definition.method
    (template_declaration
      (declaration
        type: (_)? @return
        declarator: (function_declarator declarator: (_) @name parameters: (_) @parameters)) @definition.method)
  ])

; auto name = [](…) {…};
(init_declarator
  declarator: (identifier) @name
  value: (lambda_expression
    declarator: (_ parameters: (_) @parameters (trailing_return_type (_) @return)?)?
    body: (_) @body)) @definition.function

(declaration declarator: (init_declarator value: (lambda_expression)) @wrapped . ";") @wrapper
(template_declaration
  [
    (alias_declaration)
    (class_specifier)
    (concept_definition)
    (declaration)
    (function_definition)
    (struct_specifier)
    (union_specifier)
  ] @wrapped) @wrapper

(export_declaration (_) @wrapped) @wrapper

(call_expression function: (qualified_identifier) @call)
(call_expression
  function: (template_function name: (_) @call)
  (#not-match? @call "^(?:const|dynamic|reinterpret|static)_cast$"))
(new_expression type: (_) @call)
