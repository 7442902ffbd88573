(function_definition name: (_) @name body: (_) @body) @definition.function

; readonly NAME=…, declare -r NAME=…
(declaration_command "readonly" (variable_assignment name: (variable_name) @name) @definition.constant)
(declaration_command
  ["declare" "typeset"]
  . (word) @_flags
  (variable_assignment name: (variable_name) @name) @definition.constant
  (#match? @_flags "^-[a-zA-Z]*r"))

(declaration_command ["readonly" "declare" "typeset"] . (word)? . (variable_assignment) @wrapped .) @wrapper
(comment) @comment.doc

(command
  name: (command_name) @_command
  . argument: (_) @import
  (#any-of? @_command "source" "."))

(command
  name: (command_name (word) @call)
  (#not-match? @call "^(?:source|[.:])$"))

(declaration_command "export" (variable_assignment name: (variable_name) @export))
(declaration_command "export" (variable_name) @export)
(declaration_command
  ["declare" "typeset"]
  . (word) @_flags
  [(variable_name) @export (variable_assignment name: (variable_name) @export)]
  (#match? @_flags "^-[a-zA-Z]*x"))
