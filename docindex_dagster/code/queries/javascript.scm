(field_definition
  property: (_) @name
  value: [
    (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
    (function_expression parameters: (_) @parameters body: (_) @body)
  ]) @definition.method

; name = { f() {…}, g: () => … } as a field
(field_definition
  property: (_) @scope
  value: (object (method_definition) @definition))
(field_definition
  property: (_) @scope
  value: (object
    (pair
      key: (_) @name
      value: [
        (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
        (function_expression parameters: (_) @parameters body: (_) @body)
      ]) @definition.method))
