; Captures are described in captures.py.

(function_definition
  name: (identifier) @name
  parameters: (parameters) @parameters
  return_type: (type)? @return
  body: (block) @body) @definition.function

(class_definition
  name: (identifier) @name
  body: (block) @body) @definition.class

(type_alias_statement
  left: (type [(identifier) @name (generic_type . (identifier) @name)])) @definition.type

(assignment
  left: (identifier) @name
  right: (lambda parameters: (_)? @parameters body: (_) @body)) @definition.function

(function_definition body: (block . (string) @docstring)) @definition
(class_definition body: (block . (string) @docstring)) @definition

(decorated_definition definition: (_) @wrapped) @wrapper
(decorator) @decorator
(comment) @comment

(import_statement name: (dotted_name) @import)
(import_statement name: (aliased_import name: (dotted_name) @import))
(import_from_statement module_name: (_) @import)
(future_import_statement "__future__" @import)

(call function: [(identifier) (attribute)] @call)

(module
  [
    (assignment left: (identifier) @_all right: [(list (string) @export) (tuple (string) @export)])
    (augmented_assignment left: (identifier) @_all right: [(list (string) @export) (tuple (string) @export)])
  ]
  (#eq? @_all "__all__"))
