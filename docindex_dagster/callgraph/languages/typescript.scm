; Captures are described in extract/statements.py.

(variable_declarator name: (identifier) @bind type: (_) @bind.type)
(public_field_definition name: (_) @bind type: (_)? @bind.type value: (_)? @bind.value)
(required_parameter pattern: (identifier) @parameter type: (_)? @parameter.type value: (_)? @parameter.value)
(optional_parameter pattern: (identifier) @parameter type: (_)? @parameter.type)
(required_parameter pattern: (rest_pattern (identifier) @parameter) @parameter.rest type: (_)? @parameter.type)
(required_parameter pattern: [(object_pattern) (array_pattern)] @parameter type: (_)? @parameter.type)
(required_parameter
  pattern: (object_pattern [
    (shorthand_property_identifier_pattern) @bind
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @bind)
    (pair_pattern key: (property_identifier) @bind.key value: (identifier) @bind)
  ]) @bind.from)
(required_parameter
  [(accessibility_modifier) "readonly" (override_modifier)] @bind.member . pattern: (identifier) @bind @bind.value)
(type_alias_declaration name: (_) @bind value: [(function_type) (generic_type) (type_identifier) (nested_type_identifier)] @bind.type)
(property_signature name: (_) @bind type: (_) @bind.type)
(class_heritage (extends_clause value: (_) @base))
(class_heritage
  (extends_clause value: (call_expression arguments: (arguments [(identifier) (member_expression)] @base))))
(class_heritage (implements_clause (_) @base.implements))
(extends_type_clause type: (_) @base)
