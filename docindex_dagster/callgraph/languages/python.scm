; Captures are described in extract/statements.py.

(call function: (_) @call arguments: (_)? @arguments)
(decorator (_) @decorator)

(import_statement name: (dotted_name) @import.module)
(import_statement name: (aliased_import name: (_) @import.module alias: (_) @import.alias))
(import_from_statement module_name: (_) @import.module name: (dotted_name) @import.name)
(import_from_statement
  module_name: (_) @import.module
  name: (aliased_import name: (_) @import.name alias: (_) @import.alias))
(import_from_statement module_name: (_) @import.module (wildcard_import) @import.all)

(assignment left: [(identifier) (attribute)] @bind type: (_)? @bind.type right: (_)? @bind.value)
(assignment left: [(pattern_list (_) @bind) (tuple_pattern (_) @bind)]) @bind.unpacked
(named_expression name: (_) @bind value: (_) @bind.value)
(with_item value: (as_pattern . (_) @bind.value alias: (as_pattern_target (identifier) @bind)))
(except_clause (as_pattern . [(identifier) (attribute)] @bind.type alias: (as_pattern_target (identifier) @bind)))
(except_clause
  (as_pattern . (tuple [(identifier) (attribute)] @bind.type) alias: (as_pattern_target (identifier) @bind)))
(call
  function: (identifier) @_function
  arguments: (argument_list . [(identifier) (attribute)] @bind @bind.tested . [(identifier) (attribute)] @bind.type .)
  (#eq? @_function "isinstance"))
(for_statement left: (identifier) @bind right: (_) @bind.items)
(for_statement left: [(pattern_list (identifier) @bind) (tuple_pattern (identifier) @bind)]) @bind.unpacked
(for_in_clause left: (identifier) @bind right: (_) @bind.items)
(for_in_clause left: [(pattern_list (identifier) @bind) (tuple_pattern (identifier) @bind)]) @bind.unpacked
(lambda_parameters (identifier) @bind)

(parameters [(default_parameter value: (call) @outer) (typed_default_parameter value: (call) @outer)])
(parameters (identifier) @parameter)
(parameters (typed_parameter . (identifier) @parameter type: (_) @parameter.type))
(parameters (default_parameter name: (_) @parameter value: (_) @parameter.value))
(parameters (typed_default_parameter name: (_) @parameter type: (_) @parameter.type))
(parameters (typed_parameter . (list_splat_pattern (identifier) @parameter) @parameter.rest))
(parameters (list_splat_pattern (identifier) @parameter) @parameter.rest)

(return_statement (_) @return)
(class_definition superclasses: (argument_list [(identifier) (attribute) (subscript)] @base))
