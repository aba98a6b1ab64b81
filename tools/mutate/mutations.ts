import ts from 'typescript';

/** What kind of change a mutation is. */
export type MutationKind = 'operator' | 'comparison' | 'condition' | 'constant' | 'statement';

/** A small change of a source that its tests should notice. */
export interface Mutation {
  readonly kind: MutationKind;
  /** Offsets in the source of what is replaced. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** From 1. */
  readonly line: number;
}

const COMPARISONS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
};

const OPERATORS: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '**': '*',
  '<<': '>>',
  '>>': '<<',
  '>>>': '<<',
  '&': '|',
  '|': '&',
  '^': '&',
  '+=': '-=',
  '-=': '+=',
  '*=': '/=',
  '/=': '*=',
  '|=': '&=',
  '&=': '|=',
  '&&': '||',
  '||': '&&',
};

/** Applies a mutation to its source. */
export function mutated(source: string, { start, end, replacement }: Mutation): string {
  return source.slice(0, start) + replacement + source.slice(end);
}

/**
 * All mutations of a TypeScript module, in the order of the source: an operator or a comparison exchanged for its neighbour,
 * a condition that always or never holds, a number that is one greater, a boolean inverted, a statement removed. Types,
 * imports and what makes the texts of errors are left alone.
 */
export function mutationsOf(source: string, path: string): Mutation[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.ESNext, true);
  const found: Mutation[] = [];
  const replace = (kind: MutationKind, node: ts.Node, replacement: string) => {
    const start = node.getStart(file);
    const line = file.getLineAndCharacterOfPosition(start).line + 1;
    found.push({ kind, start, end: node.getEnd(), replacement, line });
  };
  const visit = (node: ts.Node): void => {
    if (isLeftAlone(node)) return;
    if (ts.isBinaryExpression(node)) replaceOperator(node, replace);
    else if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node))
      replaceUnary(node, replace);
    else if (isConstant(node)) replaceConstant(node, replace);
    else if (isRemovable(node)) replace('statement', node, ';');
    for (const condition of conditionsOf(node)) {
      if (mayBeTrue(node)) replace('condition', condition, 'true');
      replace('condition', condition, 'false');
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

type Replace = (kind: MutationKind, node: ts.Node, replacement: string) => void;

function isLeftAlone(node: ts.Node): boolean {
  const { parent } = node;
  if (parent !== undefined && ts.isThrowStatement(parent)) return true;
  if (parent !== undefined && ts.isPropertyAssignment(parent) && parent.name === node) return true;
  const isOfTypes = ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
  return isOfTypes || ts.isImportDeclaration(node);
}

function replaceOperator(node: ts.BinaryExpression, replace: Replace): void {
  const operator = node.operatorToken.getText();
  const comparison = COMPARISONS[operator];
  if (comparison !== undefined) replace('comparison', node.operatorToken, comparison);
  if (operator === '??') replace('operator', node, node.left.getText());
  const other = OPERATORS[operator];
  if (other === undefined || (operator.startsWith('+') && hasText(node))) return;
  replace('operator', node.operatorToken, other);
}

/** Whether a sum joins texts, as far as its own literals show. */
function hasText(node: ts.Expression): boolean {
  if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
  return ts.isBinaryExpression(node) && (hasText(node.left) || hasText(node.right));
}

function replaceUnary(node: ts.PrefixUnaryExpression | ts.PostfixUnaryExpression, replace: Replace): void {
  const operand = node.operand.getText();
  if (node.operator === ts.SyntaxKind.ExclamationToken) replace('condition', node, operand);
  else if (node.operator === ts.SyntaxKind.MinusToken) replace('operator', node, operand);
  else if (node.operator === ts.SyntaxKind.PlusPlusToken || node.operator === ts.SyntaxKind.MinusMinusToken) {
    const other = node.operator === ts.SyntaxKind.PlusPlusToken ? '--' : '++';
    replace('operator', node, ts.isPrefixUnaryExpression(node) ? `${other}${operand}` : `${operand}${other}`);
  }
}

function isConstant(node: ts.Node): node is ts.NumericLiteral | ts.BooleanLiteral {
  return (
    ts.isNumericLiteral(node) ||
    node.kind === ts.SyntaxKind.TrueKeyword ||
    node.kind === ts.SyntaxKind.FalseKeyword
  );
}

function replaceConstant(node: ts.NumericLiteral | ts.BooleanLiteral, replace: Replace): void {
  if (ts.isNumericLiteral(node)) replace('constant', node, String(Number(node.text) + 1));
  else replace('constant', node, node.kind === ts.SyntaxKind.TrueKeyword ? 'false' : 'true');
}

/** Statements without which the rest still parses and has its values. */
function isRemovable(node: ts.Node): boolean {
  return (
    ts.isExpressionStatement(node) ||
    ts.isThrowStatement(node) ||
    ts.isContinueStatement(node) ||
    ts.isBreakStatement(node)
  );
}

function conditionsOf(node: ts.Node): ts.Expression[] {
  return expressionsOf(node).filter((condition) => !isConstant(condition));
}

function expressionsOf(node: ts.Node): ts.Expression[] {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)) return [node.expression];
  if (ts.isConditionalExpression(node)) return [node.condition];
  return ts.isForStatement(node) && node.condition !== undefined ? [node.condition] : [];
}

/** Whether a condition may always hold: a loop would never end. */
const mayBeTrue = (node: ts.Node) => ts.isIfStatement(node) || ts.isConditionalExpression(node);
