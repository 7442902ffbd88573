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

(comment) @comment.doc

(call
  !receiver
  method: (identifier) @_method
  arguments: (argument_list . (string) @import)
  (#any-of? @_method "require" "require_relative" "load"))

(call receiver: (_)? @receiver method: [(identifier) (constant)] @call)
