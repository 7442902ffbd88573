; Captures are described in extract/statements.py. The arguments of a command start with its name.

(command name: (command_name [
  (word) (simple_expansion) (expansion)
  (string . [(string_content) (simple_expansion) (expansion)] .)
] @call)) @arguments
((command name: (command_name (word) @_command) . argument: [(word) (raw_string) (string . (string_content))] @call)
  (#any-of? @_command "trap" "eval" "time"))
((command
  name: (command_name (word) @_command)
  . argument: (string . [(simple_expansion) (expansion)] @call .)) @arguments
  (#any-of? @_command "eval" "time"))

((command name: (command_name (word) @_command) . argument: (_) @import.module)
  (#any-of? @_command "source" "." "load"))

(variable_assignment name: [(variable_name) (subscript)] @bind value: (_) @bind.value)
(variable_assignment
  name: (variable_name) @bind @bind.filled
  value: (array (concatenation [(word) (string)] @bind.value .)))
(declaration_command (variable_name) @bind)
(for_statement variable: (variable_name) @bind value: (_) @bind.items)
(for_statement variable: (variable_name) @bind @bind.self !value)
; for file in lib/*.sh; do source "$file"; done
((for_statement value: (_) @import.module) (#match? @import.module "[*][.](sh|bash)\"?$"))
