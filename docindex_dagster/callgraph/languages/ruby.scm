; Captures are described in extract/statements.py.

(call method: (_) arguments: (_)? @arguments) @call
(super) @call
(yield (argument_list)? @arguments) @call

; A bare name may be a call.
(program (identifier) @call)
(body_statement (identifier) @call)
(block_body (identifier) @call)
(then (identifier) @call)
(else (identifier) @call)
(do (identifier) @call)
(begin (identifier) @call)
(ensure (identifier) @call)
(interpolation (identifier) @call)
(argument_list (identifier) @call)
(array (identifier) @call)
(parenthesized_statements (identifier) @call)
(splat_argument (identifier) @call)
(right_assignment_list (identifier) @call)
(call receiver: (identifier) @call)
(method body: (identifier) @call)
(assignment right: (identifier) @call)
(operator_assignment right: (identifier) @call)
(binary [left: (identifier) right: (identifier)] @call)
(unary operand: (identifier) @call)
(pair value: (identifier) @call)
(element_reference object: (identifier) @call)
(conditional (identifier) @call)
(if condition: (identifier) @call)
(unless condition: (identifier) @call)
(while condition: (identifier) @call)
(case value: (identifier) @call)
(if_modifier (identifier) @call)
(unless_modifier (identifier) @call)

(call
  !receiver
  method: (identifier) @_require
  arguments: (argument_list . (string) @import.module .)
  (#any-of? @_require "require" "load"))
(call
  !receiver
  method: (identifier) @_require
  arguments: (argument_list . (string) @import.module .) @import.beside
  (#eq? @_require "require_relative"))

(assignment
  left: [(identifier) (constant) (instance_variable) (class_variable) (global_variable) (call) (element_reference)] @bind
  right: (_) @bind.value)
(binary
  left: [(identifier) (instance_variable) (constant) (call)] @bind @bind.filled
  operator: "<<"
  right: [(identifier) (instance_variable) (constant) (call) (element_reference)] @bind.value)
(operator_assignment
  left: [(identifier) (constant) (instance_variable) (class_variable) (global_variable)] @bind
  right: (_) @bind.value)
(left_assignment_list [(identifier) (instance_variable)] @bind)
(rescue
  exceptions: (exceptions . (_) @bind.type)?
  variable: (exception_variable (identifier) @bind))
(for pattern: (identifier) @bind value: (in (_) @bind.items))
(block_parameters (identifier) @bind @bind.block)
(block_parameters (_ [name: (identifier) (identifier)] @bind))
(lambda_parameters (identifier) @bind)

; attr_reader :name makes `name` access the attribute of the object.
(call
  !receiver
  method: (identifier) @_attribute
  arguments: (argument_list (simple_symbol) @bind @bind.attribute)
  (#any-of? @_attribute "attr_reader" "attr_accessor"))

(method_parameters (identifier) @parameter)
(method_parameters (optional_parameter name: (_) @parameter value: (_) @parameter.value))
(method_parameters (keyword_parameter name: (_) @parameter value: (_)? @parameter.value))
(method_parameters (splat_parameter name: (_) @parameter) @parameter.rest)
(method_parameters (block_parameter name: (_) @parameter) @parameter.block)

; A method returns its last expression.
(method body: (body_statement (_) @return .))
(singleton_method body: (body_statement (_) @return .))
(body_statement (_) @return . (rescue))
(method body: [(identifier) (call) (conditional) (instance_variable) (element_reference) (binary)] @return)
(singleton_method body: [(identifier) (call) (conditional) (instance_variable) (element_reference) (binary)] @return)
(return (argument_list . (_) @return .))

(class superclass: (superclass (_) @base))
(assignment
  left: (constant) @base.of
  right: (call
    receiver: (constant) @_class
    method: (identifier) @_new
    arguments: (argument_list . [(constant) (scope_resolution)] @base .))
  (#eq? @_class "Class") (#eq? @_new "new"))
; A Struct has attributes with these names, passed to `new`.
(assignment
  left: (constant)
  right: (call
    receiver: (constant) @_class
    method: (identifier) @_new
    arguments: (argument_list (simple_symbol) @parameter))
  (#any-of? @_class "Struct" "Data") (#any-of? @_new "new" "define"))
(_
  name: (_)
  body: (body_statement
    (call
      !receiver
      method: (identifier) @_include
      arguments: (argument_list [(constant) (scope_resolution)] @base.mixin)))
  (#any-of? @_include "include" "prepend" "extend"))
