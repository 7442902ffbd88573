(namespace_declaration name: (_) @name body: (_) @body) @definition.module
(class_declaration name: (_) @name body: (_)? @body) @definition.class
(record_declaration name: (_) @name (parameter_list)? @parameters body: (_)? @body) @definition.class
(interface_declaration name: (_) @name body: (_)? @body) @definition.interface
(struct_declaration name: (_) @name body: (_)? @body) @definition.struct
(enum_declaration name: (_) @name body: (_)? @body) @definition.enum
(delegate_declaration type: (_) @return name: (_) @name parameters: (_) @parameters) @definition.type

(method_declaration
  returns: (_) @return
  name: (_) @name
  parameters: (_) @parameters
  body: (_)? @body) @definition.method

(constructor_declaration
  name: (_) @name
  parameters: (_) @parameters
  body: (_)? @body) @definition.method

(destructor_declaration
  name: (_) @name
  parameters: (_) @parameters
  body: (_)? @body) @definition.method

(operator_declaration
  type: (_) @return
  operator: _ @name
  parameters: (_) @parameters
  body: (_)? @body) @definition.method

(conversion_operator_declaration
  type: (_) @name @return
  parameters: (_) @parameters
  body: (_)? @body) @definition.method

(indexer_declaration
  type: (_) @return
  "this" @name
  parameters: (_) @parameters
  [accessors: (_) value: (_)] @body) @definition.property

(event_declaration
  type: (_) @return
  name: (_) @name
  accessors: (_) @body) @definition.property

(local_function_statement
  type: (_) @return
  name: (_) @name
  parameters: (_) @parameters
  body: (_)? @body) @definition.function

; Type name = (…) => …
(variable_declarator
  name: (_) @name
  [
    (lambda_expression parameters: (_) @parameters body: (_) @body)
    (anonymous_method_expression parameters: (_)? @parameters (block) @body)
  ]) @definition.function

(field_declaration
  (variable_declaration
    (variable_declarator [(lambda_expression) (anonymous_method_expression)]) @wrapped .)) @wrapper
(local_declaration_statement
  (variable_declaration
    (variable_declarator [(lambda_expression) (anonymous_method_expression)]) @wrapped .)) @wrapper

(property_declaration
  type: (_) @return
  name: (_) @name
  [accessors: (_) value: (_)] @body) @definition.property

(indexer_declaration
  type: (_) @return
  "this" @name
  parameters: (bracketed_parameter_list) @parameters
  [accessors: (_) value: (_)] @body) @definition.property

(attribute_list) @decorator
(comment) @comment.doc

(using_directive !name [(identifier) (qualified_name) (alias_qualified_name)] @import)
(using_directive name: (_) [(qualified_name) (alias_qualified_name)] @import)

(invocation_expression function: [
  (identifier) @call
  (generic_name (identifier) @call)
  (member_access_expression) @call
  (conditional_access_expression condition: (_) @receiver (member_binding_expression name: (_) @call))
])
(object_creation_expression type: [(identifier) @call (qualified_name) @call (generic_name (identifier) @call)])
