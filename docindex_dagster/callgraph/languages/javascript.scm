; Captures are described in extract/statements.py.

(formal_parameters (identifier) @parameter)
(formal_parameters (assignment_pattern left: (identifier) @parameter right: (_) @parameter.value))
(formal_parameters (rest_pattern (identifier) @parameter) @parameter.rest)
(formal_parameters [(object_pattern) (array_pattern)] @parameter)
(formal_parameters
  (assignment_pattern left: [(object_pattern) (array_pattern)] @parameter right: (_) @parameter.value))
(formal_parameters
  [
    (object_pattern [
      (shorthand_property_identifier_pattern) @bind
      (object_assignment_pattern left: (shorthand_property_identifier_pattern) @bind)
      (pair_pattern key: (property_identifier) @bind.key value: (identifier) @bind)
    ]) @bind.from
    (assignment_pattern
      left: (object_pattern [
        (shorthand_property_identifier_pattern) @bind
        (object_assignment_pattern left: (shorthand_property_identifier_pattern) @bind)
      ]) @bind.from)
  ])
(field_definition property: (_) @bind value: (_)? @bind.value)
(class_heritage (_) @base)
(class_heritage (call_expression arguments: (arguments [(identifier) (member_expression)] @base)))
