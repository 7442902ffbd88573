(function_declaration return_type: (type_annotation (_) @return)) @definition
(generator_function_declaration return_type: (type_annotation (_) @return)) @definition
(method_definition return_type: (type_annotation (_) @return)) @definition
(variable_declarator value: (arrow_function return_type: (type_annotation (_) @return))) @definition

(function_signature
  name: (_) @name
  parameters: (_) @parameters
  return_type: (type_annotation (_) @return)?) @definition.function

(public_field_definition
  name: (_) @name
  value: [
    (arrow_function
      [parameter: (_) parameters: (_)] @parameters
      return_type: (type_annotation (_) @return)?
      body: (_) @body)
    (function_expression
      parameters: (_) @parameters
      return_type: (type_annotation (_) @return)?
      body: (_) @body)
  ]) @definition.method

(abstract_class_declaration name: (_) @name body: (_) @body) @definition.class
(interface_declaration name: (_) @name body: (_) @body) @definition.interface
(enum_declaration name: (_) @name body: (_) @body) @definition.enum
(type_alias_declaration name: (_) @name) @definition.type
(internal_module name: (_) @name body: (_) @body) @definition.module
(module name: (_) @name body: (_) @body) @definition.module

(method_signature
  name: (_) @name
  parameters: (_) @parameters
  return_type: (type_annotation (_) @return)?) @definition.method

(abstract_method_signature
  name: (_) @name
  parameters: (_) @parameters
  return_type: (type_annotation (_) @return)?) @definition.method

(expression_statement (internal_module) @wrapped) @wrapper
(ambient_declaration (_) @wrapped) @wrapper

(import_require_clause source: (string) @import)

; name = { f() {…}, g: () => … } as a field
(public_field_definition
  name: (_) @scope
  value: (object (method_definition) @definition))
(public_field_definition
  name: (_) @scope
  value: (object
    (pair
      key: (_) @name
      value: [
        (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
        (function_expression parameters: (_) @parameters body: (_) @body)
      ]) @definition.method))
