; Patterns shared by JavaScript and TypeScript.

(function_declaration
  name: (_) @name
  parameters: (_) @parameters
  body: (_) @body) @definition.function

(generator_function_declaration
  name: (_) @name
  parameters: (_) @parameters
  body: (_) @body) @definition.function

(class_declaration
  name: (_) @name
  body: (_) @body) @definition.class

(method_definition
  name: (_) @name
  parameters: (_) @parameters
  body: (_) @body) @definition.method

; const name = () => …, const name = function () {…}
(variable_declarator
  name: (identifier) @name
  value: [
    (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
    (function_expression parameters: (_) @parameters body: (_) @body)
    (generator_function parameters: (_) @parameters body: (_) @body)
  ]) @definition.function

(variable_declarator
  name: (identifier) @name
  value: (class body: (_) @body)) @definition.class

; module.exports = function name() {…}
(expression_statement
  (assignment_expression
    left: (member_expression) @_left
    right: (function_expression name: (_) @name parameters: (_) @parameters body: (_) @body))
  (#eq? @_left "module.exports")) @definition.function

; module.exports = class Name {…}, exports.Name = class Name {…}
(expression_statement
  (assignment_expression
    left: (member_expression)
    right: (class name: (_) @name body: (_) @body))) @definition.class

; module.exports = class {…}, exports.Name = class {…}
(expression_statement
  (assignment_expression
    left: [(member_expression) (identifier)] @name
    right: (class !name body: (_) @body))) @definition.class

; module.exports.name = function () {…}, name = function () {…}
(expression_statement
  (assignment_expression
    left: [(member_expression) (identifier)] @name
    right: [
      (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
      (function_expression parameters: (_) @parameters body: (_) @body)
      (generator_function parameters: (_) @parameters body: (_) @body)
    ])) @definition.function

; { name: function () {…} }, { name: () => {…} }
(pair
  key: [(property_identifier) (string) (private_property_identifier)] @name
  value: [
    (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
    (function_expression parameters: (_) @parameters body: (_) @body)
    (generator_function parameters: (_) @parameters body: (_) @body)
  ]) @definition.method

; const name = { f() {…}, g: () => …, inner: { … } }, Name.prototype = {…}, and as class fields
(variable_declarator name: (identifier) @scope value: (object (method_definition) @definition))
(variable_declarator
  name: (identifier) @scope
  value: (object (pair key: (_) @scope value: (object (method_definition) @definition))))
(variable_declarator
  name: (identifier) @scope
  value: (object
    (pair
      key: (_) @name
      value: [
        (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
        (function_expression parameters: (_) @parameters body: (_) @body)
        (generator_function parameters: (_) @parameters body: (_) @body)
      ]) @definition.method))
(variable_declarator
  name: (identifier) @scope
  value: (object
    (pair
      key: (_) @scope
      value: (object
        (pair
          key: (_) @name
          value: [
            (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
            (function_expression parameters: (_) @parameters body: (_) @body)
          ]) @definition.method))))
(assignment_expression
  left: [(identifier) (member_expression)] @scope
  right: (object (method_definition) @definition))
(assignment_expression
  left: [(identifier) (member_expression)] @scope
  right: (object
    (pair
      key: (_) @name
      value: [
        (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
        (function_expression parameters: (_) @parameters body: (_) @body)
      ]) @definition.method))

; return function name() {…}, f(function name() {…})
(return_statement
  (function_expression name: (_) @name parameters: (_) @parameters body: (_) @body) @definition.function)
(arguments
  (function_expression name: (_) @name parameters: (_) @parameters body: (_) @body) @definition.function)

; (function name() {…})()
(call_expression
  function: (parenthesized_expression
    (function_expression name: (_) @name parameters: (_) @parameters body: (_) @body) @definition.function))

; return class Name {…}, () => class Name {…}, f(class Name {…})
(return_statement (class name: (_) @name body: (_) @body) @definition.class)
(arrow_function body: (class name: (_) @name body: (_) @body) @definition.class)
(arguments (class name: (_) @name body: (_) @body) @definition.class)

; export default () => …, export default class {…}
(export_statement
  "default" @name
  value: [
    (arrow_function [parameter: (_) parameters: (_)] @parameters body: (_) @body)
    (function_expression !name parameters: (_) @parameters body: (_) @body)
  ]) @definition.function

(export_statement
  "default" @name
  value: (class !name body: (_) @body)) @definition.class

(lexical_declaration . (variable_declarator) @wrapped .) @wrapper
(variable_declaration . (variable_declarator) @wrapped .) @wrapper
(export_statement declaration: (_) @wrapped) @wrapper
(decorator) @decorator
(comment) @comment.doc

(import_statement source: (string) @import)
(export_statement source: (string) @import)
(call_expression
  function: [(identifier) (import)] @_function
  arguments: (arguments . (string) @import)
  (#any-of? @_function "require" "import"))

(call_expression function: [(identifier) (member_expression)] @call)
(call_expression function: (await_expression [(identifier) (member_expression)] @call)) ; await f<T>()
(new_expression constructor: [(identifier) (member_expression)] @call)

(export_statement declaration: (_ name: (_) @export))
(export_statement declaration: (_ (variable_declarator name: (identifier) @export)))
(export_specifier !alias name: (_) @export)
(export_specifier alias: (_) @export)
(export_statement "default" @export)

; module.exports.name = …, exports.name = …, module.exports = {…}
(assignment_expression
  left: (member_expression object: (_) @_exports property: (property_identifier) @export)
  (#match? @_exports "^(?:module\\.)?exports$"))
(assignment_expression
  left: (member_expression) @_exports
  right: (object [(shorthand_property_identifier) @export (pair key: (property_identifier) @export)])
  (#eq? @_exports "module.exports"))
