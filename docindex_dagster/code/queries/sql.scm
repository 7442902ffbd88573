; Names are qualified with their schema: shop.orders.

(create_schema (identifier) @name) @definition.module

(create_table
  (object_reference schema: (_)? @scope name: (_) @name)
  [(column_definitions) (keyword_as)]? @body) @definition.struct

; A routine that the grammar cannot parse is rewritten to this view: code/source_rewrites.py.
(create_view
  (object_reference schema: (_)? @scope name: (_) @name)
  (keyword_as) @body
  (create_query (select (select_expression (term value: (field name: (identifier) @_routine)))))
  (#eq? @_routine "routine_body")) @definition.function
(create_view
  (object_reference schema: (_)? @scope name: (_) @name)
  (keyword_as) @body) @definition.type
(create_materialized_view
  (object_reference schema: (_)? @scope name: (_) @name)
  (keyword_as) @body) @definition.type

(create_type
  (object_reference schema: (_)? @scope name: (_) @name)
  (keyword_as) @body
  (enum_elements)) @definition.enum
(create_type
  (object_reference schema: (_)? @scope name: (_) @name)
  (keyword_as) @body
  (column_definitions)) @definition.struct
(create_type (object_reference schema: (_)? @scope name: (_) @name)) @definition.type

(create_function
  (object_reference schema: (_)? @scope name: (_) @name)
  (function_arguments) @parameters
  (function_body) @body) @definition.function

; The type follows RETURNS and precedes the function options, which have any order.
(create_function (keyword_returns) . [(keyword_setof) (keyword_table)] @return . (_) @return) @definition
(create_function (keyword_returns) . (_) @return) @definition

; Indexes and triggers are qualified with the name of their table.
(create_index
  column: (_) @name
  (object_reference) @scope) @definition.property
(create_trigger
  (keyword_trigger)
  . (object_reference name: (_) @name)
  (keyword_on)
  . (object_reference) @scope) @definition.function

[(comment) (marginalia)] @comment.doc

(create_extension (identifier) @import)

(invocation (object_reference) @call)
(create_trigger
  [(keyword_function) (keyword_procedure)]
  . (object_reference) @call)
