import type { Value } from '../values/value.js';

/** Arguments of a call, a filter or a test. */
export interface CallArguments {
  args: Expression[];
  named: { name: string; value: Expression }[];
  /** *args */
  more: Expression | null;
  /** **kwargs */
  moreNamed: Expression | null;
}

export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**';
export type ComparisonOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';

export interface NameNode {
  type: 'Name';
  name: string;
  /** Read, written, or a parameter. */
  use: 'load' | 'store' | 'param';
}

/** An attribute of a namespace, as a target. */
export interface NamespaceTarget {
  type: 'NamespaceTarget';
  name: string;
  attribute: string;
}

export interface TupleNode {
  type: 'Tuple';
  items: Expression[];
}

export interface SliceNode {
  type: 'Slice';
  start: Expression | null;
  stop: Expression | null;
  step: Expression | null;
}

export interface FilterNode extends CallArguments {
  type: 'Filter';
  /** What is filtered; null: the text of a block. */
  operand: Expression | null;
  name: string;
}

export interface CallNode extends CallArguments {
  type: 'Call';
  callee: Expression;
}

export type Expression =
  | { type: 'Constant'; value: Value }
  | NameNode
  | NamespaceTarget
  | TupleNode
  | { type: 'List'; items: Expression[] }
  | { type: 'Dict'; items: { key: Expression; value: Expression }[] }
  | { type: 'Attribute'; object: Expression; name: string }
  | { type: 'Item'; object: Expression; key: Expression }
  | SliceNode
  | { type: 'Binary'; operator: BinaryOperator; left: Expression; right: Expression }
  | { type: 'Logic'; operator: 'and' | 'or'; left: Expression; right: Expression }
  | { type: 'Not'; operand: Expression }
  | { type: 'Sign'; operator: '+' | '-'; operand: Expression }
  | { type: 'Comparison'; first: Expression; others: { operator: ComparisonOperator; value: Expression }[] }
  | { type: 'Concat'; items: Expression[] }
  | { type: 'Condition'; test: Expression; whenTrue: Expression; otherwise: Expression | null; line: number }
  | FilterNode
  | ({ type: 'Test'; operand: Expression; name: string } & CallArguments)
  | CallNode;

/** Parameters of a macro or a call block; defaults belong to the last ones. */
export interface Signature {
  parameters: NameNode[];
  defaults: Expression[];
}

export interface ForNode {
  type: 'For';
  target: Expression;
  iterable: Expression;
  test: Expression | null;
  body: Statement[];
  otherwise: Statement[];
  isRecursive: boolean;
}

export interface IfNode {
  type: 'If';
  test: Expression;
  body: Statement[];
  /** elif branches, each without branches of its own. */
  others: IfNode[];
  otherwise: Statement[];
}

export interface MacroNode extends Signature {
  type: 'Macro';
  name: string;
  body: Statement[];
  line: number;
}

export interface CallBlockNode extends Signature {
  type: 'CallBlock';
  /** null: the body is called at once, as the block `generation` does. */
  call: CallNode | null;
  body: Statement[];
  line: number;
}

export interface BlockNode {
  type: 'Block';
  name: string;
  body: Statement[];
  isScoped: boolean;
  isRequired: boolean;
}

export type Statement =
  | { type: 'Output'; parts: (string | Expression)[] }
  | { type: 'Set'; target: Expression; value: Expression }
  | { type: 'SetBlock'; target: Expression; filter: FilterNode | null; body: Statement[] }
  | ForNode
  | IfNode
  | MacroNode
  | CallBlockNode
  | { type: 'FilterBlock'; filter: FilterNode; body: Statement[] }
  | { type: 'With'; targets: Expression[]; values: Expression[]; body: Statement[] }
  | { type: 'Scope'; body: Statement[] }
  | BlockNode
  | { type: 'Break' | 'Continue'; line: number }
  /** Templates of other files, of which there are none: `names` are those that an import would set. */
  | { type: 'Load'; tag: string; template: Expression; names: string[] };

export type Node = Expression | Statement;

const argumentsOf = ({ args, named, more, moreNamed }: CallArguments): (Expression | null)[] => [
  ...args,
  ...named.map(({ value }) => value),
  more,
  moreNamed,
];

/** Nodes within a node, in the order in which Jinja2 visits them. */
export function childrenOf(node: Node): Node[] {
  return partsOf(node).filter((one): one is Node => one !== null);
}

function partsOf(node: Node): (Node | null)[] {
  switch (node.type) {
    case 'Constant':
    case 'Name':
    case 'NamespaceTarget':
    case 'Break':
    case 'Continue':
      return [];
    case 'Tuple':
    case 'List':
    case 'Concat':
      return node.items;
    case 'Dict':
      return node.items.flatMap(({ key, value }) => [key, value]);
    case 'Attribute':
      return [node.object];
    case 'Item':
      return [node.object, node.key];
    case 'Slice':
      return [node.start, node.stop, node.step];
    case 'Binary':
    case 'Logic':
      return [node.left, node.right];
    case 'Not':
    case 'Sign':
      return [node.operand];
    case 'Comparison':
      return [node.first, ...node.others.map(({ value }) => value)];
    case 'Condition':
      return [node.test, node.whenTrue, node.otherwise];
    case 'Filter':
    case 'Test':
      return [node.operand, ...argumentsOf(node)];
    case 'Call':
      return [node.callee, ...argumentsOf(node)];
    default:
      return partsOfStatement(node);
  }
}

function partsOfStatement(node: Statement): (Node | null)[] {
  switch (node.type) {
    case 'Output':
      return node.parts.filter((part) => typeof part !== 'string');
    case 'Set':
      return [node.target, node.value];
    case 'SetBlock':
      return [node.target, node.filter, ...node.body];
    case 'For':
      return [node.target, node.iterable, ...node.body, ...node.otherwise, node.test];
    case 'If':
      return [node.test, ...node.body, ...node.others, ...node.otherwise];
    case 'Macro':
      return [...node.parameters, ...node.defaults, ...node.body];
    case 'CallBlock':
      return [node.call, ...node.parameters, ...node.defaults, ...node.body];
    case 'FilterBlock':
      return [...node.body, node.filter];
    case 'With':
      return [...node.targets, ...node.values, ...node.body];
    case 'Scope':
    case 'Block':
      return node.body;
    case 'Load':
      return [node.template];
    default:
      return [];
  }
}

/** A node and all nodes within it, in Jinja2's order. */
export function* walk(node: Node): Generator<Node, void> {
  yield node;
  for (const child of childrenOf(node)) yield* walk(child);
}
