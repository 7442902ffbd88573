; Captures are described in extract/statements.py.

(package_header (identifier) @namespace)
(import_header (identifier) @import.module (wildcard_import) @import.all)
(import_header (identifier) @import.path .)
(import_header (identifier) @import.path (import_alias (type_identifier) @import.alias))

(call_expression . (_) @call (call_suffix) @arguments)
(infix_expression) @call
(constructor_invocation . (user_type) @new (value_arguments) @arguments)
(constructor_delegation_call "super" @call (value_arguments) @arguments)

(type_parameter (type_identifier) @generic (_)? @generic.type)
(class_declaration
  (delegation_specifier [
    (user_type) @base
    (constructor_invocation . (user_type) @base)
    (explicit_delegation . (user_type) @base)
  ]))
(object_declaration (delegation_specifier [(user_type) @base (constructor_invocation . (user_type) @base)]))
(companion_object (delegation_specifier [(user_type) @base (constructor_invocation . (user_type) @base)]))
(class_declaration
  (type_identifier) @base.companion.within
  (class_body (companion_object (type_identifier) @base.companion)))
(class_declaration
  (type_identifier) @base
  (enum_class_body (enum_entry (simple_identifier) @base.within (class_body))))
; Anonymous classes: their methods are members of the enclosing definition.
(object_literal
  (delegation_specifier [(user_type) @base (constructor_invocation . (user_type) @base)])
  (class_body (function_declaration (simple_identifier) @base.within)))

(class_declaration (type_identifier) @bind.type (enum_class_body (enum_entry . (simple_identifier) @bind)))
(class_parameter (simple_identifier) @bind . (_) @bind.type)
(type_alias (type_identifier) @bind (_) @bind.type)
(property_declaration (variable_declaration (simple_identifier) @bind . (_) @bind.type))
(property_declaration (variable_declaration (simple_identifier) @bind .) "=" . (_) @bind.value)
(property_declaration
  (variable_declaration (simple_identifier) @bind .)
  (property_delegate
    (call_expression (call_suffix (annotated_lambda (lambda_literal (statements (_) @bind.value .)))))))
(property_declaration
  (variable_declaration (simple_identifier) @bind .)
  (getter (function_body "=" . (_) @bind.value)))
(for_statement (variable_declaration . (simple_identifier) @bind .) . (_) @bind.items)
(for_statement (variable_declaration . (simple_identifier) @bind . (_) @bind.type))
(when_subject (variable_declaration . (simple_identifier) @bind .) . (_) @bind.value)
(catch_block . (simple_identifier) @bind . (_) @bind.type)

(function_value_parameters (parameter . (simple_identifier) @parameter . (_) @parameter.type))
(function_declaration receiver: (receiver_type (_) @receiver))
(lambda_parameters . (variable_declaration . (simple_identifier) @bind .) .) @bind.given
(lambda_parameters (variable_declaration . (simple_identifier) @bind .) @bind.other . (variable_declaration)) @bind.given
(lambda_parameters (variable_declaration) . (variable_declaration . (simple_identifier) @bind .) @bind.other) @bind.given
(lambda_parameters (multi_variable_declaration (variable_declaration . (simple_identifier) @bind .) @bind.other)) @bind.given
(lambda_parameters (variable_declaration . (simple_identifier) @bind . (_) @bind.type))
(function_body "=" . (_) @return)
(property_declaration "=" . (_) @initial)
(property_declaration (property_delegate) @initial)
