; Captures are described in extract/statements.py.

(function_call_expression arguments: (_) @arguments) @call
(member_call_expression arguments: (_) @arguments) @call
(nullsafe_member_call_expression arguments: (_) @arguments) @call
(scoped_call_expression arguments: (_) @arguments) @call
(function_call_expression
  function: (name) @_function
  arguments: (arguments . (argument) @call)
  (#any-of? @_function "call_user_func" "call_user_func_array"))
(object_creation_expression [(name) (qualified_name) (variable_name)] @new (arguments)? @arguments)

(namespace_definition name: (_) @namespace !body)
(namespace_use_declaration !body (namespace_use_clause . [(name) (qualified_name)] @import.path alias: (_)? @import.alias))
(namespace_use_declaration
  (namespace_name) @import.module
  body: (namespace_use_group
    (namespace_use_clause . [(name) (qualified_name)] @import.name alias: (_)? @import.alias)))

(assignment_expression
  left: [(variable_name) (member_access_expression) (scoped_property_access_expression) (subscript_expression)] @bind
  right: (_) @bind.value)
(augmented_assignment_expression left: (_) @bind operator: "??=" right: (_) @bind.value)
(foreach_statement . (_) @bind.items . (variable_name) @bind)
(foreach_statement . (_) @bind.items . (pair (_) (variable_name) @bind .))
(binary_expression left: [(variable_name) (member_access_expression)] @bind "instanceof" @bind.tested right: (_) @bind.type)
(catch_clause type: (type_list (_) @bind.type) name: (_) @bind)
(property_declaration type: (_) @bind.type (property_element name: (_) @bind))
(property_declaration (property_element name: (_) @bind default_value: (_) @bind.value))
((comment) @bind.doc . (property_declaration (property_element name: (_) @bind)) (#match? @bind.doc "@var"))
(use_as_clause (class_constant_access_expression) @bind.value (name) @bind)
(use_instead_of_clause (class_constant_access_expression (_) (name) @bind) @bind.value)

(simple_parameter type: (_)? @parameter.type name: (_) @parameter default_value: (_)? @parameter.value)
(variadic_parameter type: (_)? @parameter.type name: (_) @parameter) @parameter.rest
(property_promotion_parameter
  type: (_)? @parameter.type name: (_) @parameter default_value: (_)? @parameter.value)
(property_promotion_parameter name: (_) @bind @bind.member @bind.value)
((comment) @doc . [(function_definition) (method_declaration)] (#match? @doc "@(param|return)"))

(return_statement (_) @return)
(arrow_function body: (_) @return)
(base_clause (_) @base)
(class_interface_clause (_) @base.implements)
(use_declaration [(name) (qualified_name)] @base.mixin)
