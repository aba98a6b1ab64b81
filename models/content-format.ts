import { type CallNode, childrenOf, type Expression, type Node, walk } from './jinja/syntax/nodes.js';
import type { Template } from './jinja/template.js';

/**
 * True where a template loops over the parts of a message's content, which then reaches it as a list of parts; others get one
 * text. Names are followed as vLLM does, and through macros too:
 *
 *   {% for m in messages[1:] %}{% for part in m.content %}
 *   {% set content = m['content'] %}{% for part in content %}      {{ show(m.content) }}, where show loops over its parameter
 */
export function readsParts({ statements }: Template): boolean {
  const nodes = statements.flatMap((statement) => [...walk(statement)]);
  const lists = namesOf(nodes, new Set(['messages']), () => false);
  const messages = new Set(loopTargets(nodes, (iterated) => isNameOf(iterated, lists)));
  const single = namesOf(nodes, messages, (value) => isElementOf(value, lists));
  const contents = namesOf(nodes, new Set(), (value) => isContentOf(value, single, lists));
  return loopTargets(
    nodes,
    (iterated) => isContentOf(iterated, single, lists) || isNameOf(iterated, contents),
  ).some(() => true);
}

/** Names that are set to one of these names or to what `isIt` holds for, and so on; parameters of macros too. */
function namesOf(
  nodes: readonly Node[],
  first: ReadonlySet<string>,
  isIt: (value: Expression) => boolean,
): Set<string> {
  const names = new Set(first);
  for (let size = -1; size !== names.size; ) {
    size = names.size;
    for (const { name, value } of assignments(nodes)) {
      if (isIt(value) || isNameOf(value, names)) names.add(name);
    }
  }
  return names;
}

/** Values that names get: by `set`, by `with`, or as arguments of macros. */
function* assignments(nodes: readonly Node[]): Generator<{ name: string; value: Expression }, void> {
  for (const node of nodes) {
    if (node.type === 'Set' && node.target.type === 'Name')
      yield { name: node.target.name, value: node.value };
    if (node.type === 'With') {
      for (const [i, target] of node.targets.entries()) {
        if (target.type === 'Name') yield { name: target.name, value: node.values[i]! };
      }
    }
    if (node.type === 'Call') yield* argumentsOf(node, nodes);
  }
}

function* argumentsOf(
  { callee, args, named }: CallNode,
  nodes: readonly Node[],
): Generator<{ name: string; value: Expression }, void> {
  if (callee.type !== 'Name') return;
  for (const node of nodes) {
    if (node.type !== 'Macro' || node.name !== callee.name) continue;
    for (const [i, value] of args.entries()) {
      const parameter = node.parameters[i];
      if (parameter !== undefined) yield { name: parameter.name, value };
    }
    yield* named;
  }
}

/** Targets of loops over values for which `isIt` holds. */
function loopTargets(nodes: readonly Node[], isIt: (iterated: Expression) => boolean): string[] {
  return nodes.flatMap((node) => {
    if (node.type !== 'For' || !isIt(node.iterable)) return [];
    return node.target.type === 'Name' ? [node.target.name] : [...namesIn(node.target)];
  });
}

function* namesIn(node: Node): Generator<string, void> {
  if (node.type === 'Name') yield node.name;
  for (const child of childrenOf(node)) yield* namesIn(child);
}

/** What filters, slices and conditions are about. */
function bare(value: Expression): Expression[] {
  if (value.type === 'Filter' && value.operand !== null) return bare(value.operand);
  if (value.type === 'Item' && value.key.type === 'Slice') return bare(value.object);
  if (value.type === 'Condition') {
    return [value.whenTrue, ...(value.otherwise === null ? [] : [value.otherwise])].flatMap(bare);
  }
  return value.type === 'Logic' ? [...bare(value.left), ...bare(value.right)] : [value];
}

const isNameOf = (value: Expression, names: ReadonlySet<string>): boolean =>
  bare(value).some((one) => one.type === 'Name' && names.has(one.name));

/** An element of one of these lists, such as messages[0]. */
const isElementOf = (value: Expression, lists: ReadonlySet<string>): boolean =>
  bare(value).some((one) => one.type === 'Item' && isNameOf(one.object, lists));

/** The content of one of these messages, or of an element of one of these lists. */
function isContentOf(value: Expression, messages: ReadonlySet<string>, lists: ReadonlySet<string>): boolean {
  return bare(value).some((one) => {
    const object = contentOwner(one);
    return object !== null && (isNameOf(object, messages) || isElementOf(object, lists));
  });
}

/** Whose content an expression is; null: it is none. */
function contentOwner(value: Expression): Expression | null {
  if (value.type === 'Attribute') return value.name === 'content' ? value.object : null;
  if (value.type === 'Item') {
    const { key } = value;
    return key.type === 'Constant' && key.value === 'content' ? value.object : null;
  }
  const isGet = value.type === 'Call' && value.callee.type === 'Attribute' && value.callee.name === 'get';
  if (!isGet) return null;
  const [key] = value.args;
  return key?.type === 'Constant' && key.value === 'content'
    ? (value.callee as { object: Expression }).object
    : null;
}
