; Definitions are captured at the variable, which also finds types inside functions. The preceding nodes in `Decl` belong to it.

; Anchors make patterns fail early; without them, nested types would be slow.

; const name = struct { fn name() … }.name;
(VarDecl
  variable_type_function: (IDENTIFIER) @name
  "=" . (ErrorUnionExpr
    . (SuffixExpr . (ContainerDecl . (_) . "{" @body) . (FieldOrFnCall field_access: (_))))) @definition.function

(VarDecl
  variable_type_function: (IDENTIFIER) @name
  "=" . (ErrorUnionExpr . (SuffixExpr . (ContainerDecl . (ContainerDeclType "struct") . "{" @body)))) @definition.struct
(VarDecl
  variable_type_function: (IDENTIFIER) @name
  "=" . (ErrorUnionExpr . (SuffixExpr . (ContainerDecl . (ContainerDeclType "opaque") . "{" @body)))) @definition.struct
; Unions come first, since `union(enum)` is not an enum.
(VarDecl
  variable_type_function: (IDENTIFIER) @name
  "=" . (ErrorUnionExpr . (SuffixExpr . (ContainerDecl . (ContainerDeclType "union") . "{" @body)))) @definition.union
(VarDecl
  variable_type_function: (IDENTIFIER) @name
  "=" . (ErrorUnionExpr . (SuffixExpr . (ContainerDecl . (ContainerDeclType "enum") . "{" @body)))) @definition.enum
(VarDecl
  variable_type_function: (IDENTIFIER) @name
  "=" . [
    (ErrorUnionExpr . (SuffixExpr . (ErrorSetDecl "{" @body)))
    (BinaryExpr . (ErrorUnionExpr . (SuffixExpr . (ErrorSetDecl "{" @body))))
  ]) @definition.enum
(Decl
  (VarDecl
    variable_type_function: (IDENTIFIER) @name
    "=" . (PrefixTypeOp)* . (ErrorUnionExpr (SuffixExpr (FnProto)))) @definition.type)

(Decl
  (VarDecl . "const" . variable_type_function: (IDENTIFIER) @name "=" . (_) @_value) @definition.constant
  (#not-match? @_value "^@(import|cImport|This)\\b"))
(Decl (VarDecl . "var" . variable_type_function: (IDENTIFIER) @name) @definition.property)

(ContainerDecl (Decl (FnProto function: (_) @name)) @definition.method)
(Decl
  (FnProto
    function: (_) @name
    (ParamDeclList) @parameters)
  (Block)? @body) @definition.function
(Decl
  (FnProto
    (ParamDeclList)
    exception: "!"? @return
    (PrefixTypeOp)* @return
    (_) @return .)) @definition

(TestDecl (STRINGLITERALSINGLE) @name (Block) @body) @definition.function

(Decl (VarDecl) @wrapped) @wrapper
("pub" @part . (Decl (FnProto)) @definition)
("pub" @part . (Decl (VarDecl) @definition))

(doc_comment) @comment.doc
(line_comment) @comment

(SuffixExpr
  (BUILTINIDENTIFIER) @_function
  (FnCallArguments (_ (_ (STRINGLITERALSINGLE) @import)))
  (#any-of? @_function "@import" "@cInclude"))

(SuffixExpr variable_type_function: (IDENTIFIER) @call . (FnCallArguments))
(SuffixExpr field_constant: (IDENTIFIER) @call . (FnCallArguments))
(FieldOrFnCall function_call: (IDENTIFIER) @call)

(Decl "export" (FnProto function: (_) @export))
(Decl "export" (VarDecl variable_type_function: (_) @export))
(SuffixExpr
  (BUILTINIDENTIFIER) @_function
  (FnCallArguments . (_ (_ variable_type_function: (IDENTIFIER) @export .)))
  (#eq? @_function "@export"))
