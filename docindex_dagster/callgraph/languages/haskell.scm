; Captures are described in extract/statements.py.

(header module: (_) @namespace)
(function (infix operator: (_) @ignored))
(function (function_head_parens (infix operator: (_) @ignored)))

; Application is a call, including application through an operator or a section.
(apply function: [(variable) (qualified)] @call)
(infix operator: [(operator) (qualified) (infix_id (_))] @call)
(left_section operator: [(operator) (qualified) (infix_id (_))] @call)
(right_section . [(operator) (qualified) (infix_id (_))] @call)
; f $ x, f . g, f <$> x
((infix left_operand: [(variable) (qualified)] @call operator: (operator) @_operator)
  (#any-of? @_operator "$" "$!" "." "<$>" "<$!>" "=<<" ">=>" "<=<"))
((infix operator: (operator) @_operator right_operand: [(variable) (qualified)] @call)
  (#any-of? @_operator "." ">>=" ">=>" "<=<" "&" "<&>"))
((infix operator: (operator) @_operator right_operand: (infix left_operand: [(variable) (qualified)] @call))
  (#any-of? @_operator "." ">>=" ">=>" "<=<" "&" "<&>"))
; An expression statement is executed.
(do statement: (exp [(variable) (qualified)] @call))
(do statement: (bind expression: [(variable) (qualified)] @call))

(import module: (_) @import.module alias: (_)? @import.alias)
((import module: (_) @import.module !names) @import.all
  (#not-match? @import.all "\\bqualified\\b"))
((import module: (_) @import.module "hiding") @import.all
  (#not-eq? @import.module "Prelude")
  (#not-match? @import.all "\\bqualified\\b"))
((import
  module: (_) @import.module
  "hiding" @import.hidden
  names: (import_list name: (import_name [
    variable: (_) @import.name
    operator: (prefix_id (_) @import.name)
  ]))))
((import
  module: (_) @import.module
  names: (import_list name: (import_name [
    variable: (_) @import.name
    operator: (prefix_id (_) @import.name)
    type: (_) @import.name
  ]))) @_import
  (#not-match? @_import "\\b(hiding *[(]|qualified\\b)"))
((import
  module: (_) @import.module
  names: (import_list name: (import_name
    children: (children element: [(variable) @import.name (prefix_id (_) @import.name)])))) @_import
  (#not-match? @_import "\\b(hiding *[(]|qualified\\b)"))
((import
  module: (_) @import.module
  names: (import_list name: (import_name type: (_) @import.name children: (children (all_names))) @import.all)) @_import
  (#not-match? @_import "\\b(hiding *[(]|qualified\\b)"))

(export [
  variable: (variable) @export @export.value
  variable: (qualified id: (_) @export) @export.value
  operator: (prefix_id (_) @export @export.value)
  type: (_) @export @export.value
])
(export children: (children element: [(variable) @export @export.value (prefix_id (_) @export @export.value)]))
(module_export module: (_) @reexport.module) @reexport.all

(function patterns: (patterns [
  (constructor) @parameter
  (irrefutable) @parameter
  (list) @parameter
  (literal) @parameter
  (parens) @parameter
  (qualified) @parameter
  (record) @parameter
  (tuple) @parameter
  (unit) @parameter
  (variable) @parameter
  (wildcard) @parameter
  (as bind: (variable) @parameter)
  (strict (_) @parameter)
]))
(function (infix left_operand: (_) @parameter))
(function (infix right_operand: (_) @parameter))
; Other variables in patterns
(patterns (_ (variable) @bind))
(patterns (_ (_ (variable) @bind)))
(patterns (_ (_ (_ (variable) @bind))))
(lambda patterns: (patterns (variable) @bind))
(function (infix (_ (variable) @bind)))
(function (infix (_ (_ (variable) @bind))))
(alternative pattern: (variable) @bind)
(alternative pattern: (_ (variable) @bind))
(alternative pattern: (_ (_ (variable) @bind)))
(alternative pattern: (_ (_ (_ (variable) @bind))))
(bind pattern: (variable) @bind)
(bind pattern: (_ (variable) @bind))
(bind pattern: (_ (_ (variable) @bind)))
(generator pattern: (variable) @bind)
(generator pattern: (_ (variable) @bind))
(generator pattern: (_ (_ (variable) @bind)))
(pattern_guard pattern: (variable) @bind)
(pattern_guard pattern: (_ (variable) @bind))
(pattern_guard pattern: (_ (_ (variable) @bind)))
(local_binds (bind name: (variable) @bind match: (match expression: (_) @bind.value)))

(declarations (function match: (match expression: (_) @return)))
(declarations (bind match: (match expression: (_) @return)))
(local_binds (function match: (match expression: (_) @return)))

(instance name: (_) @base.implements)
