; Captures are described in extract/statements.py.

(call_expression function: (_) @call arguments: (_) @arguments)
(macro_invocation macro: (_) @macro)
; Macro arguments are parsed again as a tuple or an array.
((macro_invocation macro: (_) @_macro (token_tree) @again)
  (#not-any-of? @_macro "quote" "quote_spanned" "stringify" "parse_quote" "concat" "include_str" "env"))

(use_declaration argument: [(identifier) (scoped_identifier) (use_as_clause) (use_wildcard)] @use)
(use_list [(identifier) (scoped_identifier) (use_as_clause) (use_wildcard) (self)] @use)
; #[path = "folder/file.rs"] mod name;
((attribute_item (attribute (identifier) @_path value: (string_literal) @import.module))
  . (mod_item name: (identifier) @import.alias)
  (#eq? @_path "path"))
((attribute_item (attribute (identifier) @_path value: (string_literal) @import.module))
  . (attribute_item)
  . (mod_item name: (identifier) @import.alias)
  (#eq? @_path "path"))

(let_declaration pattern: (identifier) @bind type: (_) @bind.type)
(let_declaration pattern: (identifier) @bind !type value: (_)? @bind.value)
(assignment_expression left: [(identifier) (field_expression) (index_expression)] @bind right: (_) @bind.value)
(for_expression pattern: (identifier) @bind value: (_) @bind.items)
(tuple_struct_pattern type: (_) (identifier) @bind @bind.pattern)
(tuple_pattern (identifier) @bind @bind.pattern)
(field_pattern name: (shorthand_field_identifier) @bind @bind.pattern)
(field_pattern pattern: (identifier) @bind @bind.pattern)
(ref_pattern (identifier) @bind @bind.pattern)
(mut_pattern (identifier) @bind @bind.pattern)
(reference_pattern (identifier) @bind @bind.pattern)
(captured_pattern . (identifier) @bind @bind.pattern)
(match_pattern . (identifier) @bind @bind.pattern)

(closure_parameters (identifier) @parameter @parameter.pattern)
(closure_parameters (parameter pattern: (identifier) @parameter type: (_) @parameter.type))
(parameters (parameter pattern: (identifier) @parameter type: (_) @parameter.type))
(type_parameter name: (type_identifier) @generic !bounds)
(type_parameter name: (type_identifier) @generic bounds: (trait_bounds (_) @generic.type))
(where_predicate left: (type_identifier) @generic bounds: (trait_bounds (_) @generic.type))

(return_expression (_) @return)
(function_item body: (block [
  (identifier) (scoped_identifier) (field_expression) (call_expression) (unary_expression) (reference_expression)
] @return .))

(struct_expression name: (_) @fill body: (_) @arguments)
(struct_item body: (field_declaration_list (field_declaration name: (_) @bind type: (_) @bind.type)))
(struct_item body: (ordered_field_declaration_list type: (_) @bind @bind.type @bind.place))
(enum_variant name: (_) @bind @bind.self)
(enum_variant name: (_) @bind.of
  body: (field_declaration_list (field_declaration name: (_) @bind type: (_) @bind.type)))
(enum_variant name: (_) @bind.of
  body: (ordered_field_declaration_list type: (_) @bind @bind.type @bind.place))
(const_item name: (_) @bind type: (_) @bind.type)
(const_item name: (_) @bind value: (array_expression) @bind.value)
(static_item name: (_) @bind type: (_) @bind.type)
(static_item name: (_) @bind value: (array_expression) @bind.value)
(type_item name: (_) @bind type: (_) @bind.type)

(impl_item trait: (_) @base.implements)
(trait_item bounds: (trait_bounds [(type_identifier) (scoped_type_identifier) (generic_type)] @base))
