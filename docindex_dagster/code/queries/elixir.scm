; Everything is a call, even a definition: def is a call with a call as its argument.

(call
  target: (identifier) @_define
  (arguments . (alias) @name)
  (do_block) @body
  (#eq? @_define "defmodule")) @definition.module

(call
  target: (identifier) @_define
  (arguments . (alias) @name)
  (do_block) @body
  (#eq? @_define "defprotocol")) @definition.interface

; An implementation, and the functions in it, use the name of the implementing type.
(call
  target: (identifier) @_define
  (arguments
    (keywords
      (pair
        key: (keyword) @_key
        value: [(alias) @name (list . (alias) @name)])))
  (do_block) @body
  (#eq? @_define "defimpl")
  (#match? @_key "^for:")) @definition.impl
(call
  target: (identifier) @_define
  (arguments . (alias) @name)
  (do_block) @body
  (#eq? @_define "defimpl")) @definition.impl

(call
  target: (identifier) @_define
  (arguments
    . [
      (identifier) @name
      (call target: (identifier) @name (arguments) @parameters)
      (binary_operator
        left: [
          (identifier) @name
          (call target: (identifier) @name (arguments) @parameters)
        ]
        operator: "when")
    ])
  (#any-of? @_define "def" "defp" "defdelegate")) @definition.function

(call
  target: (identifier) @_define
  (arguments
    . [
      (identifier) @name
      (call target: (identifier) @name (arguments) @parameters)
      (binary_operator
        left: [
          (identifier) @name
          (call target: (identifier) @name (arguments) @parameters)
        ]
        operator: "when")
    ])
  (#any-of? @_define "defmacro" "defmacrop" "defguard" "defguardp")) @definition.macro

; Operators
(call
  target: (identifier) @_define
  (arguments
    . [
      (binary_operator operator: _ @name)
      (unary_operator operator: _ @name)
      (binary_operator left: (binary_operator operator: _ @name) operator: "when")
    ])
  (#any-of? @_define "def" "defp")) @definition.function

(call (do_block) @body) @definition
(call
  (arguments
    "," @body
    . (keywords . (pair key: (keyword) @_key)) .)
  (#match? @_key "^do:")) @definition

(unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_attribute
    (arguments
      . (binary_operator
        left: [(identifier) @name (call target: (identifier) @name)]
        operator: "::")))
  (#any-of? @_attribute "type" "typep" "opaque")) @definition.type

(unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_attribute
    (arguments
      . (binary_operator
        left: (call target: (identifier) @name (arguments) @parameters)
        operator: "::"
        right: (_) @return)))
  (#eq? @_attribute "callback")) @definition.method

(unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_attribute
    (arguments
      . (binary_operator
        left: (call target: (identifier) @name (arguments) @parameters)
        operator: "::"
        right: (_) @return)))
  (#eq? @_attribute "macrocallback")) @definition.macro

(unary_operator
  operator: "@"
  operand: (call target: (identifier) @name (arguments))
  (#not-match? @name "^(?:after_compile|after_verify|before_compile|behaviour|callback|compile|deprecated|derive)$")
  (#not-match? @name "^(?:describetag|dialyzer|doc|enforce_keys|external_resource|file|impl|macrocallback|moduledoc)$")
  (#not-match? @name "^(?:moduletag|nifs|on_definition|on_load|opaque|optional_callbacks|shortdoc|since|spec|tag)$")
  (#not-match? @name "^(?:type|typedoc|typep|vsn)$")) @definition.constant

(call
  (do_block
    (unary_operator
      operator: "@"
      operand: (call
        target: (identifier) @_attribute
        (arguments . [(string) @docstring (sigil (quoted_content) @docstring)]))))
  (#eq? @_attribute "moduledoc")) @definition

; Attributes document the definition below them.
(unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_attribute
    (arguments . [(string) @docstring (sigil (quoted_content) @docstring)]))
  (#any-of? @_attribute "doc" "typedoc"))
(unary_operator
  operator: "@"
  operand: (call target: (identifier) @_attribute)
  (#any-of? @_attribute "doc" "typedoc")) @comment
(unary_operator
  operator: "@"
  operand: (call target: (identifier) @_attribute)
  (#any-of? @_attribute "deprecated" "dialyzer" "impl" "since" "spec")) @decorator
(comment) @comment

(call
  target: (identifier) @_directive
  (arguments . [(alias) (dot)] @import)
  (#any-of? @_directive "alias" "import" "require" "use"))

; Definitions and attribute values also look like calls.
(call
  target: (identifier) @call
  (#not-match? @call "^(?:alias|import|require|use|def|defp|def(?:delegate|exception|guardp?|impl|macrop?|module))$")
  (#not-match? @call "^(?:def(?:overridable|protocol|struct)|behaviour|callback|deprecated|derive|dialyzer|doc)$")
  (#not-match? @call "^(?:enforce_keys|impl|macrocallback|moduledoc|opaque|since|spec|type|typedoc|typep)$"))
(call target: (dot left: (alias) right: (identifier)) @call)
(call target: (dot left: (identifier) right: (identifier)) @call (arguments))
(call target: (dot left: (identifier) @call !right))
(call target: (dot left: [(call) (dot) (unary_operator)] right: (identifier) @call) (arguments))
(unary_operator
  operator: "&"
  operand: (binary_operator left: [(identifier) @call (call target: (dot) @call)] operator: "/"))
