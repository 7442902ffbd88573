; Captures are described in extract/statements.py. A call is captured at its arguments; the extractor finds the callee from
; there. The node around an assignment or `return` is a wildcard, since a query with `AssignExpr` takes a second to compile.

(FnCallArguments) @call @arguments

(VarDecl
  variable_type_function: (IDENTIFIER) @import.alias
  "=" . (ErrorUnionExpr . (SuffixExpr
    . (BUILTINIDENTIFIER) @_import
    . (FnCallArguments . (ErrorUnionExpr (SuffixExpr (STRINGLITERALSINGLE) @import.module))) .))
  (#eq? @_import "@import"))
((SuffixExpr
  . (BUILTINIDENTIFIER) @_import
  . (FnCallArguments . (ErrorUnionExpr (SuffixExpr (STRINGLITERALSINGLE) @import.module))))
  (#eq? @_import "@import"))
(Decl
  "usingnamespace" @reexport.all
  (ErrorUnionExpr . (SuffixExpr
    . (BUILTINIDENTIFIER) @_import
    . (FnCallArguments . (ErrorUnionExpr (SuffixExpr (STRINGLITERALSINGLE) @reexport.module))) .))
  (#eq? @_import "@import"))

; The declared type, or else the value.
(VarDecl variable_type_function: (IDENTIFIER) @bind ":" . (PrefixTypeOp)* . (ErrorUnionExpr) @bind.value)
(VarDecl . ["const" "var"] . variable_type_function: (IDENTIFIER) @bind . "=" . (PrefixTypeOp)* . (_) @bind.value)
(ContainerField field_member: (IDENTIFIER) @bind ":" . (PrefixTypeOp)* . (ErrorUnionExpr) @bind.value)
(ContainerField field_member: (IDENTIFIER) @bind ":" "=" . (_) @bind.value)
(_
  (ErrorUnionExpr (SuffixExpr (FieldOrFnCall field_access: (_)) .)) @bind
  . (AssignOp "=") . (_) @bind.value)

(IfPrefix (_) @bind.value (PtrPayload variable: (IDENTIFIER) @bind))
(WhilePrefix (_) @bind.value (PtrPayload variable: (IDENTIFIER) @bind))
(ForPrefix
  (ForArgumentsList . (ForItem [(ErrorUnionExpr) (UnaryExpr) (BinaryExpr) (IfExpr)] @bind.items))
  (PtrListPayload . variable: (IDENTIFIER) @bind))
(ForPrefix
  (ForArgumentsList . (ForItem) . (ForItem [(ErrorUnionExpr) (UnaryExpr) (BinaryExpr) (IfExpr)] @bind.items))
  (PtrListPayload . variable: (IDENTIFIER) . variable: (IDENTIFIER) @bind))
(Payload variable: (IDENTIFIER) @bind)
; switch (shape) { .circle => |c| …, inline else => |s| … }
(SwitchExpr
  . (_) @bind.from
  (SwitchProng
    (SwitchCase (SwitchItem (ErrorUnionExpr (SuffixExpr . field_constant: (IDENTIFIER) @bind.key .))))
    (PtrIndexPayload . variable: (IDENTIFIER) @bind)))
(SwitchExpr
  . (_) @bind.from
  (SwitchProng (SwitchCase "else" @bind.key) (PtrIndexPayload . variable: (IDENTIFIER) @bind)))

(Decl (FnProto (ParamDeclList
  (ParamDecl parameter: (IDENTIFIER) @parameter (ParamType (ErrorUnionExpr)? @parameter.value)))))

("return" . (_) @return)

; Type{ .name = value }, and .{ .name = value } with a declared type.
(_ (ErrorUnionExpr (SuffixExpr) @fill .) . (InitList) @arguments)
(_ (ErrorUnionExpr (SuffixExpr) @fill .) . (InitList (ErrorUnionExpr . (SuffixExpr . (InitList) @arguments .))))
(VarDecl
  ":" . (PrefixTypeOp)* . (ErrorUnionExpr (SuffixExpr) @fill .)
  "=" . (ErrorUnionExpr . (SuffixExpr . (InitList) @arguments .)))
(Decl
  (FnProto (ErrorUnionExpr (SuffixExpr) @fill .) .)
  (Block (Statement (_ "return" . (ErrorUnionExpr . (SuffixExpr . (InitList) @arguments .))))))
