; Captures are described in extract/statements.py.

(package_clause (package_identifier) @namespace)

(call_expression function: (_) @call type_arguments: (_)? @call.item arguments: (_)? @arguments)
(type_conversion_expression type: (generic_type) @call)

(import_spec !name path: (_) @import.module)
(import_spec name: (package_identifier) @import.alias path: (_) @import.module)
(import_spec name: (dot) @import.all path: (_) @import.module)

(const_spec name: (identifier) @bind type: (_) @bind.type)
(const_spec name: (identifier) @bind @bind.again !type !value)
(var_spec name: (identifier) @bind type: (_) @bind.type)
(var_spec name: (identifier) @bind !type value: (_)) @bind.parts
(short_var_declaration left: (expression_list (identifier) @bind)) @bind.parts
(assignment_statement left: (expression_list [(identifier) (selector_expression)] @bind) operator: "=") @bind.parts
(range_clause left: (expression_list (identifier) @bind .) right: (_) @bind.items)
(receive_statement left: (expression_list . (identifier) @bind) right: (_) @bind.value)
(send_statement channel: (_) @bind value: (_) @bind.sent)
(type_switch_statement alias: (expression_list (identifier) @bind) value: (_) @bind.value)
(type_switch_statement
  alias: (expression_list (identifier) @bind)
  (type_case type: (_) @bind.type) @bind.within)

(method_declaration
  receiver: (parameter_list (parameter_declaration name: (identifier) @bind type: (_) @bind.type)))
(function_declaration
  result: (parameter_list (parameter_declaration name: (identifier) @bind type: (_) @bind.type)))
(method_declaration
  result: (parameter_list (parameter_declaration name: (identifier) @bind type: (_) @bind.type)))

(function_declaration
  parameters: (parameter_list (parameter_declaration name: (identifier) @parameter type: (_) @parameter.type)))
(method_declaration
  parameters: (parameter_list (parameter_declaration name: (identifier) @parameter type: (_) @parameter.type)))
(func_literal
  parameters: (parameter_list (parameter_declaration name: (identifier) @parameter type: (_) @parameter.type)))
(variadic_parameter_declaration name: (identifier) @parameter type: (_) @parameter.each) @parameter.rest
(type_parameter_declaration name: (identifier) @generic type: (type_constraint (_) @generic.type))

(return_statement (expression_list . (_) @return))

(composite_literal type: [(type_identifier) (qualified_type) (generic_type)] @fill body: (_) @arguments)
(composite_literal
  type: (_ [element: (_) value: (_)] @fill)
  body: (literal_value [
    (literal_element (literal_value) @arguments)
    (keyed_element value: (literal_element (literal_value) @arguments))
  ]))

(type_spec type: (struct_type (field_declaration_list
  (field_declaration name: (field_identifier) @bind type: (_) @bind.type))))
(type_spec type: (struct_type (field_declaration_list
  (field_declaration !name type: [
    (type_identifier) @bind
    (qualified_type name: (_) @bind)
    (generic_type type: (type_identifier) @bind)
  ] @bind.type))))
(type_spec type: (struct_type (field_declaration_list (field_declaration !name type: (_) @base))))
(type_spec type: (interface_type (type_elem . [(type_identifier) (qualified_type) (generic_type)] @base .)))
(type_spec
  name: (_) @base.of
  type: [
    (type_identifier) (qualified_type) (generic_type) (pointer_type) (slice_type) (array_type) (map_type)
    (channel_type) (function_type)
  ] @base)
(type_alias name: (_) @base.of type: (_) @base)
