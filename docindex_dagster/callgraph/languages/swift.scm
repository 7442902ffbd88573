; Captures are described in extract/statements.py. The grammar uses the field `name` for types too.

(import_declaration (identifier) @import.module @import.all)

; Require the parenthesis, since the same node is used for subscripts. The grammar parses `a + b()` as a call of `a + b`.
(call_expression
  . [
    (simple_identifier) (navigation_expression) (prefix_expression) (postfix_expression)
    (additive_expression) (multiplicative_expression) (infix_expression)
  ] @call
  (call_suffix . [(value_arguments . "(") (lambda_literal)]) @arguments)
(call_expression . (call_expression) @call (call_suffix . (value_arguments . "(")) @arguments)
(constructor_expression (user_type) @new (constructor_suffix . (value_arguments)? @arguments))
; Type<Argument> { … }, which the grammar parses as comparisons
(comparison_expression lhs: (simple_identifier) @new rhs: (comparison_expression rhs: (lambda_literal)))

(type_parameter . (type_identifier) @generic (_)? @generic.type)
(type_constraint (inheritance_constraint . (identifier) @generic (_) @generic.type .))
(inheritance_specifier inherits_from: (_) @base)

(typealias_declaration . name: (type_identifier) @bind name: (_) @bind.type)
(associatedtype_declaration . name: (type_identifier) @bind name: (_) @bind.type)
(enum_entry
  name: (simple_identifier) @bind.of
  . data_contents: (enum_type_parameters name: (_) @bind @bind.type @bind.place))

(property_declaration name: (pattern bound_identifier: (_) @bind) . (type_annotation (_) @bind.type))
(property_declaration name: (pattern bound_identifier: (_) @bind) . "=" . value: (_) @bind.value)
(protocol_property_declaration name: (pattern bound_identifier: (_) @bind) (type_annotation (_) @bind.type))
(property_declaration name: (pattern (pattern (simple_identifier) @bind)))
(property_declaration "=" . (_) @initial)
(assignment
  target: (directly_assignable_expression (navigation_expression target: (self_expression))) @bind
  result: [(simple_identifier) (navigation_expression)] @bind.value)
(init_declaration
  body: (function_body
    (statements
      (assignment
        target: (directly_assignable_expression (simple_identifier) @bind @bind.member)
        result: [(simple_identifier) (navigation_expression)] @bind.value))))

(if_statement bound_identifier: (simple_identifier) @bind . "=" . (_) @bind.value)
(guard_statement bound_identifier: (simple_identifier) @bind . "=" . (_) @bind.value)
(while_statement bound_identifier: (simple_identifier) @bind . "=" . (_) @bind.value)
(if_statement bound_identifier: (simple_identifier) @bind @bind.value . ["," "{"])
(guard_statement bound_identifier: (simple_identifier) @bind @bind.value . ["," (else)])
(if_statement bound_identifier: (simple_identifier) @bind . (type_annotation (_) @bind.type))
(guard_statement bound_identifier: (simple_identifier) @bind . (type_annotation (_) @bind.type))
(for_statement item: (pattern bound_identifier: (_) @bind) collection: (_) @bind.items)
(for_statement item: (pattern (pattern (simple_identifier) @bind) .) collection: (_) @bind.items)
(for_statement item: (pattern (pattern (simple_identifier) @bind) . (pattern)))

; Associated values of enum cases, and type-casting patterns.
(pattern (pattern bound_identifier: (simple_identifier) @bind) @bind.value)
(pattern (value_binding_pattern) (simple_identifier) (pattern . (simple_identifier) @bind .) @bind.value)
(if_statement (pattern [(simple_identifier) bound_identifier: (_)] @bind) @bind.value)
; Every guard has an `else`; without it in the pattern, compiling the query takes ten times as long.
(guard_statement (pattern [(simple_identifier) bound_identifier: (_)] @bind) @bind.value (else))
(pattern (pattern bound_identifier: (simple_identifier) @bind) name: (_) @bind.type)

(parameter . (simple_identifier) @parameter . ":" (_) @parameter.type .)
(parameter . (simple_identifier) @parameter.label . (simple_identifier) @parameter . ":" (_) @parameter.type .)
(protocol_function_declaration "func" . name: _ @hidden)
(property_declaration
  value: (lambda_literal
    (lambda_function_type
      (lambda_function_type_parameters
        (lambda_parameter . name: (simple_identifier) @parameter name: (_)? @parameter.type)))))
(lambda_function_type_parameters . (lambda_parameter . name: (simple_identifier) @bind .) .) @bind.given
(lambda_function_type_parameters (lambda_parameter) . (lambda_parameter . name: (simple_identifier) @bind .) .) @bind.given
(lambda_function_type_parameters (lambda_parameter . name: (simple_identifier) @bind .) @bind.other . (lambda_parameter)) @bind.given
(lambda_parameter . name: (simple_identifier) @bind name: (_) @bind.type)
