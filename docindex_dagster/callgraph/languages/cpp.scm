; Captures are described in extract/statements.py.

(new_expression type: (_) @new arguments: (_)? @arguments)
(compound_literal_expression
  type: [(type_identifier) (qualified_identifier) (template_type)] @new value: (_) @arguments)
(field_initializer . (_) @new . (_) @arguments)
(field_initializer . (field_identifier) @assigned . (_ . (_) @assigned.value .))

(using_declaration "using" . (qualified_identifier) @import.path)
(using_declaration "namespace" @import.name @import.all . (_) @import.module)
(namespace_alias_definition name: (_) @import.alias (_) @import.path .)

(alias_declaration name: (_) @bind type: (_) @bind.type)
(type_definition type: [(qualified_identifier) (template_type)] @bind.type declarator: (type_identifier) @bind)
(assignment_expression
  left: [(identifier) (field_expression) (subscript_expression)] @assigned
  operator: "="
  right: [(new_expression) (qualified_identifier) (compound_literal_expression)] @assigned.value)
(for_range_loop type: [(placeholder_type_specifier) (auto)] declarator: (_) @bind right: (_) @bind.items)
(for_range_loop type: [(type_identifier) (qualified_identifier) (template_type)] @bind.type declarator: (_) @bind)
(catch_clause parameters: (parameter_list (parameter_declaration type: (_) @bind.type declarator: (_) @bind)))
(lambda_expression declarator: (_) @signature)
(lambda_capture_initializer left: (_) @bind right: (_) @bind.value)
(call_expression
  arguments: (argument_list
    . (_) @bind.items
    (lambda_expression
      declarator: (_ parameters: (parameter_list
        (parameter_declaration type: (placeholder_type_specifier) declarator: (_) @bind) .)))))

(template_declaration parameters: (_) @template [(class_specifier) (struct_specifier)])
((template_type name: (type_identifier) @_name) @instance
  (#not-any-of? @_name
    "array" "atomic" "basic_string" "deque" "function" "initializer_list" "list" "lock_guard" "map" "multimap" "multiset"
    "numeric_limits" "optional" "pair" "queue" "set" "shared_ptr" "span" "stack" "tuple" "unique_lock" "unique_ptr"
    "unordered_map" "unordered_set" "variant" "vector" "weak_ptr" "enable_if_t" "is_same"))
(call_expression function: (template_function name: (identifier) @_name arguments: (_)) @instance
  (#match? @_name "^[A-Z]"))

(return_statement [(new_expression) (qualified_identifier) (compound_literal_expression) (this)] @return)
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base)
