; Captures are described in extract/statements.py.

(file_scoped_namespace_declaration name: (_) @namespace)
(using_directive !name [(identifier) (qualified_name)] @import.module) @import.all
(using_directive "global" !name [(identifier) (qualified_name)] @reexport.module) @reexport.all
(using_directive
  name: (_) @import.alias
  (qualified_name
    qualifier: (_) @import.module
    name: (identifier) @import.name))
(using_directive name: (_) @bind [(qualified_name name: (generic_name)) (generic_name)] @bind.type)

(invocation_expression function: (_) @call arguments: (_) @arguments)
(object_creation_expression type: (_) @new arguments: (_)? @arguments)
(implicit_object_creation_expression (argument_list) @arguments) @new
(constructor_initializer "base" @call (argument_list) @arguments)
(base_list . (_) @new . (argument_list) @arguments)

(type_parameter name: (_) @generic)
(type_parameter_constraints_clause . (identifier) @generic (type_parameter_constraint type: (_) @generic.type))
(base_list [(identifier) (generic_name) (qualified_name)] @base)
(base_list (primary_constructor_base_type type: (_) @base))
(base_list (primary_constructor_base_type type: (_) @new (argument_list) @arguments))

(variable_declaration type: (implicit_type) (variable_declarator name: (_) @bind (_) @bind.value))
(variable_declaration
  type: [(identifier) (generic_name) (qualified_name) (nullable_type) (array_type) (predefined_type)] @bind.type
  (variable_declarator name: (_) @bind))
(assignment_expression left: (identifier) @bind right: (identifier) @bind.value) @bind.member
(assignment_expression left: (member_access_expression expression: "this") @bind right: (identifier) @bind.value)
(foreach_statement type: (_) @bind.type left: (identifier) @bind right: (_) @bind.items)
(from_clause name: (identifier) @bind . (_) @bind.items)
(declaration_pattern type: (_) @bind.type name: (_) @bind)
(recursive_pattern type: (_) @bind.type name: (_) @bind)
(declaration_expression type: (_) @bind.type name: (_) @bind)
(catch_declaration type: (_) @bind.type name: (_) @bind)
(invocation_expression
  function: (member_access_expression expression: (_) @bind.items name: (_) @_method)
  arguments: (argument_list (argument (declaration_expression type: (implicit_type) name: (_) @bind)))
  (#any-of? @_method "TryPop" "TryPeek" "TryDequeue" "TryTake" "TryGetValue"))
(enum_declaration
  name: (_) @bind.type
  body: (enum_member_declaration_list (enum_member_declaration name: (_) @bind)))
(record_declaration (parameter_list (parameter type: (_) @bind.type name: (_) @bind)))
(class_declaration (parameter_list (parameter type: (_) @bind.type name: (_) @bind)))
(struct_declaration (parameter_list (parameter type: (_) @bind.type name: (_) @bind)))

(parameter type: (_) @parameter.type name: (_) @parameter)
(parameter_list type: (_) @parameter.type name: (_) @parameter) @parameter.rest
(parameter (modifier) @_this type: (_) @receiver (#eq? @_this "this"))
(lambda_expression parameters: [
  (implicit_parameter) @bind
  (parameter_list . (parameter !type name: (_) @bind) .)
  (parameter_list (parameter !type name: (_) @bind) @bind.other . (parameter !type))
]) @bind.given
(lambda_expression
  parameters: (parameter_list (parameter !type) . (parameter !type name: (_) @bind) @bind.other)) @bind.given
(property_declaration accessors: (_) value: (_) @initial)
