(function_item
  name: (_) @name
  parameters: (_) @parameters
  return_type: (_)? @return
  body: (_) @body) @definition.function

(function_signature_item
  name: (_) @name
  parameters: (_) @parameters
  return_type: (_)? @return) @definition.function

(struct_item name: (_) @name body: (field_declaration_list)? @body) @definition.struct
(union_item name: (_) @name body: (_) @body) @definition.union
(enum_item name: (_) @name body: (_) @body) @definition.enum
(trait_item name: (_) @name body: (_) @body) @definition.trait
(mod_item name: (_) @name body: (_) @body) @definition.module
(type_item name: (_) @name) @definition.type
(const_item name: (_) @name) @definition.constant
(static_item name: (_) @name) @definition.constant
; let name = |…| …
(let_declaration
  pattern: (identifier) @name
  value: (closure_expression parameters: (_) @parameters return_type: (_)? @return body: (_) @body)) @definition.function
(macro_definition name: (_) @name [(macro_rule) "{" "("] @body) @definition.macro

; An impl, and the methods in it, use the name of the type.
(impl_item
  type: [
    (type_identifier) @name
    (primitive_type) @name
    (scoped_type_identifier name: (_) @name)
    (generic_type type: (type_identifier) @name)
    (generic_type type: (scoped_type_identifier name: (_) @name))
    (reference_type type: (type_identifier) @name)
    (reference_type type: (generic_type type: (type_identifier) @name))
    (reference_type type: (primitive_type) @name)
  ]
  body: (_) @body) @definition.impl
; For a tuple or a slice, the name is the type as written.
(impl_item type: (_) @name body: (_) @body) @definition.impl

(attribute_item) @decorator
[(line_comment) (block_comment)] @comment.doc

(use_declaration argument: (_) @import)
(extern_crate_declaration name: (_) @import)

(call_expression function: [
  (identifier) @call
  (scoped_identifier) @call
  (field_expression) @call
  (generic_function function: (_) @call)
])
(macro_invocation macro: (_) @call)

(source_file (_ (visibility_modifier) name: (_) @export))
