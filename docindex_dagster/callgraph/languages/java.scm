; Captures are described in extract/statements.py.

(package_declaration [(identifier) (scoped_identifier)] @namespace)
(import_declaration (scoped_identifier scope: (_) @import.module name: (_) @import.name) .)
(import_declaration [(identifier) (scoped_identifier)] @import.module (asterisk) @import.all)

(method_invocation arguments: (_) @arguments) @call
(object_creation_expression type: (_) @new arguments: (_) @arguments)
(explicit_constructor_invocation constructor: (super) @call arguments: (_) @arguments)

(type_parameter (type_identifier) @generic (type_bound . (_) @generic.type)?)
(superclass (_) @base)
(super_interfaces (type_list (_) @base.implements))
(extends_interfaces (type_list (_) @base))
; Anonymous classes: their methods are members of the enclosing definition.
(object_creation_expression type: (_) @base (class_body (method_declaration name: (_) @base.within)))
(enum_declaration name: (_) @bind.type body: (enum_body (enum_constant name: (_) @bind)))
(record_declaration parameters: (formal_parameters (formal_parameter type: (_) @bind.type name: (_) @bind)))

(field_declaration type: (_) @bind.type declarator: (variable_declarator name: (_) @bind))
(local_variable_declaration
  type: (_) @bind.type
  declarator: (variable_declarator name: (_) @bind value: (_)? @bind.value))
(assignment_expression
  left: (field_access object: (this)) @bind
  right: [(identifier) (method_reference)] @bind.value)
(enhanced_for_statement type: (_) @bind.type name: (_) @bind value: (_) @bind.items)
(resource type: (_) @bind.type name: (_) @bind value: (_) @bind.value)
(catch_formal_parameter (catch_type . (_) @bind.type) name: (_) @bind)
(instanceof_expression right: (_) @bind.type name: (_) @bind)
(type_pattern (_) @bind.type . (identifier) @bind)
(record_pattern_component (_) @bind.type . (identifier) @bind)

(formal_parameter type: (_) @parameter.type name: (_) @parameter)
(spread_parameter (_) @parameter.type . (variable_declarator name: (_) @parameter)) @parameter.rest
(lambda_expression parameters: (identifier) @bind) @bind.given
(inferred_parameters (identifier) @bind .) @bind.given
(inferred_parameters (identifier) @bind @bind.other . (identifier)) @bind.given
