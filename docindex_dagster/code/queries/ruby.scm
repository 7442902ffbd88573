(module name: (_) @name body: (_)? @body) @definition.module
(class name: (_) @name body: (_)? @body) @definition.class

(method
  name: (_) @name
  parameters: (_)? @parameters
  body: (_)? @body) @definition.method

(singleton_method
  name: (_) @name
  parameters: (_)? @parameters
  body: (_)? @body) @definition.method

; def Name.method outside a class, and classes created with a call
(program
  (singleton_method
    object: (constant) @owner
    name: (_) @name
    parameters: (_)? @parameters
    body: (_)? @body) @definition.method)
(assignment
  left: (constant) @name
  right: (call
    receiver: (constant) @_class
    method: (identifier) @_new
    block: (_)? @body)
  (#any-of? @_class "Struct" "Class" "Data" "Module") (#any-of? @_new "new" "define")) @definition.class

; Empty bodies.
(module "end" @body) @definition
(class "end" @body) @definition
(method "end" @body) @definition
(singleton_method "end" @body) @definition

; name = ->(…) {…}, name = lambda {…}
(assignment
  left: [(identifier) (constant)] @name
  right: (lambda parameters: (_)? @parameters body: (_) @body)) @definition.function
(assignment
  left: [(identifier) (constant)] @name
  right: (call
    !receiver
    method: (identifier) @_method
    block: (_ parameters: (_)? @parameters) @body)
  (#any-of? @_method "lambda" "proc")) @definition.function

(comment) @comment.doc

(call
  !receiver
  method: (identifier) @_method
  arguments: (argument_list . (string) @import)
  (#any-of? @_method "require" "require_relative" "load"))

(call receiver: (_)? @receiver method: [(identifier) (constant)] @call)
