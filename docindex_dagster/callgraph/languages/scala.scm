; Captures are described in extract/statements.py.

(package_clause name: (_) @namespace !body)
; Each package is nested in the previous one and sees its members.
(compilation_unit (package_clause name: (_) @import.module @import.all !body) . (package_clause !body))

; A path has no node of its own.
(import_declaration [(identifier) "."]* @import.path . (identifier) @import.path .)
(import_declaration
  . (identifier) @import.module ("." @import.module (identifier) @import.module)*
  . "." . (namespace_wildcard) @import.all)
(import_declaration
  . (identifier) @import.module ("." @import.module (identifier) @import.module)*
  . "." . (namespace_selectors (namespace_wildcard) @import.all))
(import_declaration
  . (identifier) @import.module ("." @import.module (identifier) @import.module)*
  . "." . (namespace_selectors (identifier) @import.name))
(import_declaration
  . (identifier) @import.module ("." @import.module (identifier) @import.module)*
  . "." . (namespace_selectors (_ name: (identifier) @import.name alias: (identifier) @import.alias)))
(import_declaration
  . (identifier) @import.module ("." @import.module (identifier) @import.module)*
  . "." . (_ name: (identifier) @import.name alias: (identifier) @import.alias))

(call_expression
  function: [(identifier) (field_expression) (generic_function) (call_expression)] @call
  arguments: (arguments) @arguments)
(call_expression
  function: [(identifier) (field_expression) (generic_function) (call_expression)] @call
  arguments: [(block) (case_block) (colon_argument)])
((infix_expression operator: (_) @_operator) @call (#not-match? @_operator ":"))
(instance_expression . (_) @new . (arguments)? @arguments)
(extends_clause type: (_) @new . arguments: (arguments) @arguments)

; A method without parentheses is called by its bare name.
(arguments [(identifier) (field_expression)] @read)
(block [(identifier) (field_expression)] @read)
(indented_block [(identifier) (field_expression)] @read)
(parenthesized_expression [(identifier) (field_expression)] @read)
(tuple_expression [(identifier) (field_expression)] @read)
(interpolation [(identifier) (field_expression)] @read)
(prefix_expression [(identifier) (field_expression)] @read)
(return_expression [(identifier) (field_expression)] @read)
(throw_expression [(identifier) (field_expression)] @read)
(field_expression value: [(identifier) (field_expression)] @read)
(infix_expression left: [(identifier) (field_expression)] @read)
(infix_expression right: [(identifier) (field_expression)] @read)
(val_definition value: [(identifier) (field_expression)] @read)
(var_definition value: [(identifier) (field_expression)] @read)
(assignment_expression right: [(identifier) (field_expression)] @read)
(function_definition body: [(identifier) (field_expression)] @read)
(if_expression condition: [(identifier) (field_expression)] @read)
(if_expression consequence: [(identifier) (field_expression)] @read)
(if_expression alternative: [(identifier) (field_expression)] @read)
(match_expression value: [(identifier) (field_expression)] @read)
(case_clause body: [(identifier) (field_expression)] @read)
(guard condition: [(identifier) (field_expression)] @read)
(for_expression body: [(identifier) (field_expression)] @read)
(lambda_expression [(field_expression) (identifier)] @read .)
(enumerator (_) [(identifier) (field_expression)] @read)
(template_body [(identifier) (field_expression)] @read)
(generic_function function: [(identifier) (field_expression)] @read)

(type_parameters name: (identifier) @generic)
(type_parameters name: (identifier) @generic . bound: (upper_bound type: (_) @generic.type))

; The trait mixed in last is searched first.
(class_definition
  (extends_clause [(type_identifier) (generic_type) (stable_type_identifier) (compound_type) (infix_type)] @base.mixin))
(trait_definition
  (extends_clause [(type_identifier) (generic_type) (stable_type_identifier) (compound_type) (infix_type)] @base.mixin))
(object_definition
  (extends_clause [(type_identifier) (generic_type) (stable_type_identifier) (compound_type) (infix_type)] @base.mixin))
(enum_definition
  (extends_clause [(type_identifier) (generic_type) (stable_type_identifier) (compound_type) (infix_type)] @base.mixin))
(given_definition return_type: (_) @base body: [(template_body) (with_template_body)])
(given_definition !name return_type: (_) @hidden body: [(template_body) (with_template_body)])
(object_definition name: (_) @property)
(instance_expression . (_) @base (template_body (function_definition name: (_) @base.within)))

(type_definition name: (_) @bind type: (_) @bind.type)
(class_definition
  name: (_) @bind.of
  class_parameters: (class_parameters (class_parameter type: (_) @bind @bind.type @bind.place)))
(full_enum_case
  name: (_) @bind.of
  class_parameters: (class_parameters (class_parameter type: (_) @bind @bind.type @bind.place)))
(class_parameter name: (_) @bind type: (_) @bind.type)
(class_definition
  class_parameters: (class_parameters (class_parameter name: (_) @parameter type: (_) @parameter.type)))
(val_definition pattern: (identifier) @bind type: (_) @bind.type)
(val_definition pattern: (identifier) @bind !type value: (_) @bind.value)
(var_definition pattern: (identifier) @bind type: (_) @bind.type)
(var_definition pattern: (identifier) @bind !type value: (_) @bind.value)
(val_declaration name: (identifier) @bind type: (_) @bind.type)
(var_declaration name: (identifier) @bind type: (_) @bind.type)
(val_definition value: (_) @initial)
(var_definition value: (_) @initial)
(given_definition name: (_) @bind return_type: (_) @bind.type body: (_))
(assignment_expression
  left: (field_expression value: (identifier) @_object) @bind
  right: [(identifier) (field_expression)] @bind.value
  (#eq? @_object "this"))
(self_type . (identifier) @bind @bind.self)
(self_type [(type_identifier) (generic_type) (stable_type_identifier)] @base.companion)

(enumerator . (identifier) @bind "<-" . (_) @bind.items)
(enumerator . (identifier) @bind "=" . (_) @bind.value)
(tuple_pattern (identifier) @bind @bind.pattern)
(case_class_pattern pattern: (identifier) @bind @bind.pattern)
(infix_pattern (identifier) @bind @bind.pattern)
(case_clause pattern: (identifier) @bind @bind.pattern)
(typed_pattern pattern: (identifier) @bind type: (_) @bind.type)
(capture_pattern name: (identifier) @bind pattern: (case_class_pattern type: (_) @bind.type))
(capture_pattern name: (identifier) @bind pattern: (typed_pattern type: (_) @bind.type))

; Context parameters are not counted.
((function_definition
  (parameters
    (parameter
      name: (identifier) @parameter
      type: [(type_identifier) (generic_type) (function_type) (stable_type_identifier) (tuple_type) (compound_type)
        (infix_type) (projected_type)] @parameter.type)) @_list)
  (#not-match? @_list "^[(] *(implicit|using) "))
((function_definition (parameters (parameter name: (identifier) @bind type: (_) @bind.type)) @_list)
  (#match? @_list "^[(] *(implicit|using) "))
(function_definition
  (parameters (parameter name: (identifier) @parameter type: (lazy_parameter_type type: (_) @parameter.type))))
(function_definition
  (parameters
    (parameter
      name: (identifier) @parameter
      type: (repeated_parameter_type type: (_) @parameter.type)) @parameter.rest))
((function_declaration
  (parameters
    (parameter
      name: (identifier) @parameter
      type: [(type_identifier) (generic_type) (function_type) (stable_type_identifier) (tuple_type) (compound_type)
        (infix_type) (projected_type)] @parameter.type)) @_list)
  (#not-match? @_list "^[(] *(implicit|using) "))
((function_declaration (parameters (parameter name: (identifier) @bind type: (_) @bind.type)) @_list)
  (#match? @_list "^[(] *(implicit|using) "))
(function_declaration
  (parameters (parameter name: (identifier) @parameter type: (lazy_parameter_type type: (_) @parameter.type))))
(function_declaration
  (parameters
    (parameter
      name: (identifier) @parameter
      type: (repeated_parameter_type type: (_) @parameter.type)) @parameter.rest))
(val_definition value: (lambda_expression parameters: (identifier) @parameter))
(val_definition value: (lambda_expression (bindings (binding . name: (identifier) @parameter))))
(function_definition !return_type body: (_) @return)
(return_expression (_) @return)

; Extension methods.
(extension_definition
  parameters: (parameters (parameter type: (_) @receiver))
  (function_definition name: (_) @receiver.within))
(extension_definition
  parameters: (parameters (parameter name: (_) @bind type: (_) @bind.type))
  (function_definition) @bind.within)
(extension_definition
  parameters: (parameters (parameter type: (_) @receiver))
  (function_declaration name: (_) @receiver.within))
(extension_definition
  parameters: (parameters (parameter name: (_) @bind type: (_) @bind.type))
  (function_declaration) @bind.within)
(extension_definition
  parameters: (parameters (parameter type: (_) @receiver))
  (template_body (function_definition name: (_) @receiver.within)))
(extension_definition
  parameters: (parameters (parameter name: (_) @bind type: (_) @bind.type))
  (template_body (function_definition) @bind.within))
(class_definition
  (modifiers "implicit")
  class_parameters: (class_parameters . (class_parameter type: (_) @receiver))
  body: (template_body (function_definition name: (_) @receiver.within)))

(lambda_expression parameters: (identifier) @bind) @bind.given
(lambda_expression parameters: (bindings . (binding . name: (identifier) @bind .) .)) @bind.given
(lambda_expression parameters: (bindings (binding) . (binding . name: (identifier) @bind .) .)) @bind.given
(lambda_expression parameters: (bindings (binding . name: (identifier) @bind .) @bind.other . (binding))) @bind.given
(bindings (binding name: (identifier) @bind type: (_) @bind.type))
(colon_argument lambda_start: (identifier) @bind) @bind.given
(call_expression
  function: (call_expression function: (field_expression value: (_) @bind.items field: (identifier) @_method))
  arguments: (arguments (lambda_expression parameters: (bindings (binding name: (identifier) @bind) .)))
  (#any-of? @_method "foldLeft" "fold" "scanLeft"))
