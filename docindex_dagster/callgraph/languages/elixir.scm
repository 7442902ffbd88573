; Captures are described in extract/statements.py.

; The heads of definitions and the type specifications look like calls.
(call
  target: (identifier) @_define
  (arguments . [
    (call target: (identifier) @ignored)
    (binary_operator left: (call target: (identifier) @ignored) operator: "when")
  ])
  (#any-of? @_define "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp" "defdelegate"))
(unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_attribute
    (#any-of? @_attribute "spec" "type" "typep" "opaque" "callback" "macrocallback"))) @ignored
(unary_operator operator: "@" operand: (call target: (identifier) @ignored))
(unary_operator operator: "&" operand: (binary_operator left: (call) @ignored operator: "/"))

((call target: (identifier) @call . (arguments)? @arguments)
  (#not-match? @call "^(alias|import|require|use|def|defp|def(delegate|exception|guardp?|impl|macrop?|module))$")
  (#not-match? @call "^(def(overridable|protocol|struct)|case|cond|for|if|quote|receive|try|unless|unquote)$")
  (#not-match? @call "^(unquote_splicing|with)$"))
(call target: (dot) @call (arguments) @arguments)
((call target: (dot left: (alias) right: (identifier)) @call) @_call
  (#not-match? @_call "[(]"))
(binary_operator operator: "|>" right: (identifier) @call)
; Functions named with a module and an atom: apply(Module, :name, [argument])
((call target: (identifier) @_apply (arguments . (_) . (atom) . (list) @arguments .) @call)
  (#any-of? @_apply "apply" "spawn" "spawn_link" "spawn_monitor"))
((call target: (dot right: (identifier) @_apply) (arguments . (_) . (atom) . (list) @arguments .) @call)
  (#any-of? @_apply "apply" "spawn" "start" "start_link" "async"))
((call target: (identifier) @_apply (arguments . (_) @call . (list) @arguments .))
  (#eq? @_apply "apply"))
((call target: (identifier) @_define (arguments . [(call (arguments) @arguments) (identifier)] . (keywords) @call))
  (#eq? @_define "defdelegate"))
; `use` runs __using__ of a module; the quoted code becomes part of the using module.
((call target: (identifier) @_use (arguments . [(alias) (dot)] @call)) (#eq? @_use "use"))
((call target: (identifier) @_use (arguments . [(alias) (dot)] @base.mixin)) (#eq? @_use "use"))

((call target: (identifier) @_alias (arguments . [(alias) (dot right: (alias))] @import.path .))
  (#eq? @_alias "alias"))
((call
  target: (identifier) @_alias
  (arguments
    . [(alias) (dot right: (alias)) (identifier)] @import.path
    . (keywords (pair key: (keyword) @_as value: (alias) @import.alias))))
  (#any-of? @_alias "alias" "require")
  (#match? @_as "^as:"))
((call
  target: (identifier) @_alias
  (arguments . (dot left: (_) @import.module right: (tuple (alias) @import.name))))
  (#eq? @_alias "alias"))
((call target: (identifier) @_import (arguments . [(alias) (dot)] @import.module .) @import.all)
  (#eq? @_import "import"))
((call
  target: (identifier) @_import
  (arguments . [(alias) (dot)] @import.module . (keywords . (pair key: (keyword) @_only)) .) @import.all)
  (#eq? @_import "import")
  (#match? @_only "^except:"))
((call
  target: (identifier) @_import
  (arguments
    . [(alias) (dot)] @import.module
    . (keywords . (pair
      key: (keyword) @_except
      value: (list (keywords (pair key: (keyword) @import.name)))) @import.hidden)))
  (#eq? @_import "import")
  (#match? @_except "^except:"))
((call
  target: (identifier) @_import
  (arguments
    . [(alias) (dot)] @import.module
    . (keywords . (pair key: (keyword) @_only value: (atom))) .) @import.all)
  (#eq? @_import "import")
  (#match? @_only "^only:"))
((call
  target: (identifier) @_import
  (arguments
    . [(alias) (dot)] @import.module
    . (keywords . (pair
      key: (keyword) @_only
      value: (list (keywords (pair key: (keyword) @import.name)))))))
  (#eq? @_import "import")
  (#match? @_only "^only:"))

(binary_operator left: (identifier) @bind operator: "=" right: (_) @bind.value)
(binary_operator left: (map (struct (_) @bind.type)) operator: "=" right: (identifier) @bind)
(binary_operator left: (identifier) @bind operator: "<-" right: (_) @bind.items)
(binary_operator left: (tuple (identifier) @bind .) operator: "<-" right: (_) @bind.items)
(map (struct) @bind.from (map_content (keywords (pair key: (keyword) @bind.key value: (identifier) @bind))))
((unary_operator operator: "@" operand: (call target: (identifier) @_attribute (arguments . (_) @bind.value))) @bind
  (#not-match? @_attribute "^(behaviour|callback|deprecated|derive|dialyzer|doc|enforce_keys|impl|macrocallback)$")
  (#not-match? @_attribute "^(moduledoc|opaque|optional_callbacks|since|spec|type|typedoc|typep)$"))
; Struct fields
((call target: (identifier) @_define (arguments [
  (keywords (pair key: (keyword) @bind value: (_) @bind.value))
  (list (keywords (pair key: (keyword) @bind value: (_) @bind.value)))
  (list (atom) @bind @bind.attribute)
]))
  (#any-of? @_define "defstruct" "defexception"))
(map (struct (_) @fill) (map_content (keywords) @arguments))

; For a pattern parameter, its first token serves as its name.
((call
  target: (identifier) @_define
  (arguments . [
    (call (arguments [
      (identifier) @parameter
      (binary_operator left: (identifier) @parameter operator: "\\\\" right: (_) @parameter.value)
      (binary_operator left: (map (struct (_) @parameter.type)) operator: "=" right: (identifier) @parameter)
      (binary_operator left: (identifier) @parameter operator: "=" right: (map (struct (_) @parameter.type)))
      (binary_operator left: [(binary_operator) (bitstring) (list) (map "%" . "{") (tuple)] operator: "=" right: (identifier) @parameter)
      (binary_operator left: (identifier) @parameter operator: "=" right: [(binary_operator) (bitstring) (list) (map "%" . "{") (tuple)])
      (binary_operator operator: ["<>" "++" "|" "::" ".."] @parameter)
      (bitstring "<<" @parameter)
      (list "[" @parameter)
      (map "%" @parameter)
      (tuple "{" @parameter)
      (keywords . (pair key: (_) @parameter))
      [(alias) (atom) (boolean) (char) (charlist) (float) (integer) (nil) (sigil) (string) (unary_operator)] @parameter
    ]))
    (binary_operator left: (call (arguments [
      (identifier) @parameter
      (binary_operator left: (identifier) @parameter operator: "\\\\" right: (_) @parameter.value)
      (binary_operator left: (map (struct (_) @parameter.type)) operator: "=" right: (identifier) @parameter)
      (binary_operator left: (identifier) @parameter operator: "=" right: (map (struct (_) @parameter.type)))
      (binary_operator left: [(binary_operator) (bitstring) (list) (map "%" . "{") (tuple)] operator: "=" right: (identifier) @parameter)
      (binary_operator left: (identifier) @parameter operator: "=" right: [(binary_operator) (bitstring) (list) (map "%" . "{") (tuple)])
      (binary_operator operator: ["<>" "++" "|" "::" ".."] @parameter)
      (bitstring "<<" @parameter)
      (list "[" @parameter)
      (map "%" @parameter)
      (tuple "{" @parameter)
      (keywords . (pair key: (_) @parameter))
      [(alias) (atom) (boolean) (char) (charlist) (float) (integer) (nil) (sigil) (string) (unary_operator)] @parameter
    ])) operator: "when")
  ]))
  (#any-of? @_define "def" "defp" "defmacro" "defmacrop" "defguard" "defguardp"))

((call target: (identifier) @_define (do_block (_) @return .)) (#any-of? @_define "def" "defp"))
((call
  target: (identifier) @_define
  (arguments (keywords (pair key: (keyword) @_do value: (_) @return))))
  (#any-of? @_define "def" "defp")
  (#match? @_do "^do:"))

((call target: (identifier) @_define (arguments . [(alias) (dot)] @base.implements)) (#eq? @_define "defimpl"))
((unary_operator
  operator: "@"
  operand: (call target: (identifier) @_attribute (arguments . [(alias) (dot)] @base.implements .)))
  (#eq? @_attribute "behaviour"))
