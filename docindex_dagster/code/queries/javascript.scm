(field_definition
  property: (_) @name
  value: [
    (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
    (function_expression parameters: (_) @parameters body: (_) @body)
  ]) @definition.method
