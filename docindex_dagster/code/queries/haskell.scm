; The type signature of a function and its equations are clauses of one definition.

(declarations
  [
    (signature name: [(variable) @name (prefix_id (_) @name)])
    (function name: [(variable) @name (prefix_id (_) @name)] patterns: (_) @parameters match: (_) @body)
    (function name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
    (function (infix operator: [(operator) @name (infix_id (_) @name)]) match: (_) @body)
    (function (function_head_parens (infix operator: [(operator) @name (infix_id (_) @name)])) match: (_) @body)
    (bind name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
  ] @definition.function) @clauses

(class_declarations
  [
    (signature name: [(variable) @name (prefix_id (_) @name)])
    (function name: [(variable) @name (prefix_id (_) @name)] patterns: (_) @parameters match: (_) @body)
    (function (infix operator: [(operator) @name (infix_id (_) @name)]) match: (_) @body)
    (bind name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
  ] @definition.method) @clauses
(class_declarations
  (signature names: (binding_list name: (variable) @name @definition.method)))

(instance_declarations
  [
    (signature name: [(variable) @name (prefix_id (_) @name)])
    (function name: [(variable) @name (prefix_id (_) @name)] patterns: (_) @parameters match: (_) @body)
    (function (infix operator: [(operator) @name (infix_id (_) @name)]) match: (_) @body)
    (bind name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
  ] @definition.method) @clauses

; In where and let, only bindings with parameters are functions.
(local_binds
  [
    (signature name: (variable) @name type: [(function) (_ type: (function)) (_ type: (_ type: (function)))])
    (function name: (variable) @name patterns: (_) @parameters match: (_) @body)
    (function (infix operator: [(operator) @name (infix_id (_) @name)]) match: (_) @body)
    (bind name: (variable) @name match: (match expression: (lambda)) @body)
  ] @definition.function) @clauses

(foreign_import signature: (signature name: (variable) @name) @definition.function @wrapped) @wrapper

(data_type
  name: (_) @name
  "=" @body
  constructors: (data_constructors . (_) "|")) @definition.enum
(data_type name: (_) @name "where" @body constructors: (gadt_constructors)) @definition.enum
(data_type
  (infix operator: (_) @name)
  constructors: (_) @body) @definition.enum
(data_type name: (_) @name "=" @body constructors: (_)) @definition.struct
(data_type name: (_) @name) @definition.type
(newtype name: (_) @name constructor: (_) @body) @definition.struct
(type_synomym name: (_) @name) @definition.type
(type_synomym (infix operator: (_) @name)) @definition.type
(type_family name: (_) @name "where"? @body) @definition.type
(data_family name: (_) @name) @definition.type

(class name: (_) @name "where"? @body) @definition.class

; An instance, and the functions in it, use the name of the instance type; if that has no name, the name of the class.
(instance
  patterns: (type_patterns
    . [
      (name) @name
      (apply constructor: (name) @name)
      (parens type: [
        (name) @name
        (apply constructor: (name) @name)
        (apply constructor: (apply constructor: (name) @name))
        (apply constructor: (apply constructor: (apply constructor: (name) @name)))
      ])
    ])
  "where"? @body) @definition.impl
(instance name: (_) @name "where"? @body) @definition.impl

; The return type is the last in a chain of arrows. The longest matching pattern comes first.
(signature type: [
  (function result: (function result: (function result: (function result: (function result: (_) @return)))))
  (_ type: (function result: (function result: (function result: (function result: (function result: (_) @return))))))
  (_ type: (_ type: (function result: (function result: (function result: (function result: (_) @return))))))
]) @definition
(signature type: [
  (function result: (function result: (function result: (function result: (_) @return))))
  (_ type: (function result: (function result: (function result: (function result: (_) @return)))))
]) @definition
(signature type: [
  (function result: (function result: (function result: (_) @return)))
  (_ type: (function result: (function result: (function result: (_) @return))))
  (_ type: (_ type: (function result: (function result: (function result: (_) @return)))))
]) @definition
(signature type: [
  (function result: (function result: (_) @return))
  (_ type: (function result: (function result: (_) @return)))
  (_ type: (_ type: (function result: (function result: (_) @return))))
]) @definition
(signature type: [
  (function result: (_) @return)
  (_ type: (function result: (_) @return))
  (_ type: (_ type: (function result: (_) @return)))
]) @definition
(signature type: [
  (context type: (_) @return)
  (_) @return
]) @definition

((pragma) @decorator
  (#match? @decorator "^[{]-#[ ]*(INLIN|NOINLINE|SPECIALI|DEPRECATED|WARNING|ANN|OVERLAP|INCOHERENT)"))
(comment) @comment.doc ; with CRLF line endings, all but the first line of a Haddock comment are plain comments
((haddock) @comment.doc (#not-match? @comment.doc "^([{]-|--)[ ]*\\^"))
((haddock) @comment (#match? @comment "^([{]-|--)[ ]*\\^")) ; documents the preceding item

(import module: (_) @import)

(export variable: (_) @export)
(export type: (_) @export)
(export operator: (prefix_id (_) @export))
(export children: (children element: (variable) @export))
(module_export module: (_) @export)

(apply function: [(variable) (qualified)] @call)
(infix operator: (infix_id (_) @call))
(infix ; f $ x, f . g, f <$> x
  left_operand: [(variable) (qualified)] @call
  operator: (operator) @_operator
  (#any-of? @_operator "$" "$!" "." "<$>" "<$!>" "=<<" ">=>"))
(infix
  operator: (operator) @_operator
  right_operand: [(variable) (qualified)] @call
  (#any-of? @_operator "." ">>=" ">=>" "&" "<&>"))
(exp [(variable) (qualified)] @call)
