import { type Args, Callable, NO_ARGS } from '../calls.js';
import { JinjaError, typeError } from '../errors.js';
import { FILTERS, TESTS } from '../filters/registry.js';
import type { Rendering } from '../rendering.js';
import type {
  CallArguments,
  CallNode,
  ComparisonOperator,
  Expression,
  FilterNode,
  SliceNode,
} from '../syntax/nodes.js';
import { getAttribute, getItem, isDictAttribute, methodsOf } from '../values/attributes.js';
import { compare, contains, equals } from '../values/compare.js';
import { Dict } from '../values/dict.js';
import { listOf } from '../values/iteration.js';
import { signed } from '../values/numbers.js';
import { binary } from '../values/operators.js';
import { textOf } from '../values/repr.js';
import { slice } from '../values/slices.js';
import { isTrue, typeNameOf } from '../values/types.js';
import { Undefined } from '../values/undefined.js';
import { Tuple, type Value } from '../values/value.js';
import { type Evaluate, type Frame, measured, type Scope } from './scope.js';

/** Makes a function of an expression. Each node of it counts as a step; parts that may not run count when they do. */
export function compileExpression(node: Expression, scope: Scope): Evaluate {
  scope.program.cost++;
  switch (node.type) {
    case 'Constant': {
      const { value } = node;
      return () => value;
    }
    case 'Name':
      return compileName(node.name, scope);
    case 'Tuple': {
      const items = compileItems(node.items, scope);
      return (frame) => new Tuple(items(frame));
    }
    case 'List':
      return compileItems(node.items, scope);
    case 'Dict':
      return compileDict(node.items, scope);
    case 'Attribute':
      return compileAttribute(compileExpression(node.object, scope), node.name);
    case 'Item':
      return compileItem(node, scope);
    case 'Binary': {
      const [left, right] = [compileExpression(node.left, scope), compileExpression(node.right, scope)];
      const { operator } = node;
      return (frame) => binary(operator, left(frame), right(frame), frame.run);
    }
    case 'Logic':
    case 'Condition':
      return compileBranches(node, scope);
    case 'Not': {
      const operand = compileExpression(node.operand, scope);
      return (frame) => !isTrue(operand(frame));
    }
    case 'Sign':
      return compileSign(node.operator, compileExpression(node.operand, scope));
    case 'Comparison':
      return compileComparison(node, scope);
    case 'Concat':
      return compileConcat(node.items, scope);
    case 'Filter':
      return compileFilter(node, scope, null);
    case 'Test':
      return compileTest(node, scope);
    case 'Call':
      return compileCall(node, scope);
    default:
      throw new JinjaError('TemplateSyntaxError', `a ${node.type.toLowerCase()} cannot stand there`);
  }
}

function compileName(name: string, scope: Scope): Evaluate {
  const read = scope.reader(name);
  return (frame) => {
    const value = read(frame);
    return value === undefined ? new Undefined({ name }) : value;
  };
}

function compileItems(nodes: readonly Expression[], scope: Scope): (frame: Frame) => Value[] {
  const items = nodes.map((node) => compileExpression(node, scope));
  return (frame) => items.map((item) => item(frame));
}

function compileDict(items: readonly { key: Expression; value: Expression }[], scope: Scope): Evaluate {
  const pairs = items.map(({ key, value }) => ({
    key: compileExpression(key, scope),
    value: compileExpression(value, scope),
  }));
  return (frame) => Dict.of(pairs.map(({ key, value }): [Value, Value] => [key(frame), value(frame)]));
}

function compileAttribute(object: Evaluate, name: string): Evaluate {
  if (isDictAttribute(name)) return (frame) => getAttribute(object(frame), name);
  return (frame) => {
    const value = object(frame);
    const element = value instanceof Dict ? value.getText(name) : undefined;
    return element === undefined ? getAttribute(value, name) : element;
  };
}

function compileItem(node: Expression & { type: 'Item' }, scope: Scope): Evaluate {
  const object = compileExpression(node.object, scope);
  if (node.key.type === 'Slice') return compileSlice(object, node.key, scope);
  const key = compileExpression(node.key, scope);
  if (node.key.type === 'Constant' && typeof node.key.value === 'string') {
    const text = node.key.value;
    return (frame) => {
      const value = object(frame);
      const element = value instanceof Dict ? value.getText(text) : undefined;
      return element === undefined ? getItem(value, text) : element;
    };
  }
  return (frame) => getItem(object(frame), key(frame));
}

function compileSlice(object: Evaluate, { start, stop, step }: SliceNode, scope: Scope): Evaluate {
  const part = (node: Expression | null): Evaluate =>
    node === null ? () => null : compileExpression(node, scope);
  const [first, last, stride] = [part(start), part(stop), part(step)];
  return (frame) =>
    slice(object(frame), { start: first(frame), stop: last(frame), step: stride(frame) }, frame.run);
}

/** A part that may not run: its steps count when it does. */
function compileBranch(node: Expression, scope: Scope): Evaluate {
  const { made, cost } = measured(scope.program, () => compileExpression(node, scope));
  if (cost <= 1) return made;
  return (frame) => {
    frame.run.spend(cost);
    return made(frame);
  };
}

function compileBranches(node: Expression & { type: 'Logic' | 'Condition' }, scope: Scope): Evaluate {
  if (node.type === 'Logic') {
    const left = compileExpression(node.left, scope);
    const right = compileBranch(node.right, scope);
    const stopsAt = node.operator === 'or';
    return (frame) => {
      const value = left(frame);
      return isTrue(value) === stopsAt ? value : right(frame);
    };
  }
  const inner = scope.conditional();
  const test = compileExpression(node.test, inner);
  const then = compileBranch(node.whenTrue, inner);
  const otherwise = node.otherwise === null ? null : compileBranch(node.otherwise, inner);
  const hint = `the inline if-expression on line ${node.line} evaluated to false and no else section was defined.`;
  return (frame) => {
    if (isTrue(test(frame))) return then(frame);
    return otherwise === null ? new Undefined({ hint }) : otherwise(frame);
  };
}

function compileSign(operator: '+' | '-', operand: Evaluate): Evaluate {
  return (frame) => {
    const value = operand(frame);
    const result = signed(operator, value);
    if (result !== null) return result;
    if (value instanceof Undefined) throw value.error;
    throw typeError(`bad operand type for unary ${operator}: '${typeNameOf(value)}'`);
  };
}

function compileComparison(node: Expression & { type: 'Comparison' }, scope: Scope): Evaluate {
  const first = compileExpression(node.first, scope);
  const others = node.others.map(({ operator, value }) => ({
    holds: COMPARISONS[operator],
    value: compileExpression(value, scope),
  }));
  if (others.length === 1) {
    const [{ holds, value }] = others as [(typeof others)[number]];
    return (frame) => holds(first(frame), value(frame), frame.run);
  }
  return (frame) => {
    let left = first(frame);
    return others.every(({ holds, value }) => {
      const right = value(frame);
      const result = holds(left, right, frame.run);
      left = right;
      return result;
    });
  };
}

type Holds = (a: Value, b: Value, run: Rendering) => boolean;

const COMPARISONS: Readonly<Record<ComparisonOperator, Holds>> = {
  '==': equals,
  '!=': (a, b, run) => !equals(a, b, run),
  '<': (a, b, run) => compare(a, b, run, '<') < 0,
  '<=': (a, b, run) => compare(a, b, run, '<=') <= 0,
  '>': (a, b, run) => compare(a, b, run, '>') > 0,
  '>=': (a, b, run) => compare(a, b, run, '>=') >= 0,
  in: (a, b, run) => contains(b, a, run),
  'not in': (a, b, run) => !contains(b, a, run),
};

function compileConcat(nodes: readonly Expression[], scope: Scope): Evaluate {
  const items = compileItems(nodes, scope);
  return (frame) => {
    const texts = items(frame).map((item) => textOf(item, frame.run));
    frame.run.make(texts.reduce((sum, text) => sum + text.length, 0));
    return texts.join('');
  };
}

/** A filter. @param text what it filters where it has no operand: the text of a block */
export function compileFilter(node: FilterNode, scope: Scope, text: Evaluate | null): Evaluate {
  const filter = FILTERS.get(node.name);
  const inner = node.operand as FilterNode | null;
  const operand =
    inner === null
      ? text!
      : text !== null && inner.type === 'Filter'
        ? compileFilter(inner, scope, text)
        : compileExpression(inner, scope);
  if (filter === undefined) return compileUnknown('filter', node.name, scope);
  const args = compileArguments(node, scope);
  return (frame) => filter(frame.run, operand(frame), args(frame));
}

function compileTest(node: Expression & { type: 'Test' }, scope: Scope): Evaluate {
  const test = TESTS.get(node.name);
  const operand = compileExpression(node.operand, scope);
  if (test === undefined) return compileUnknown('test', node.name, scope);
  const args = compileArguments(node, scope);
  return (frame) => test(frame.run, operand(frame), args(frame));
}

/** A filter or test that does not exist: within a condition it fails when it is used. */
function compileUnknown(kind: 'filter' | 'test', name: string, scope: Scope): Evaluate {
  const message = `No ${kind} named '${name}'`;
  if (!scope.isConditional) throw new JinjaError('TemplateAssertionError', message);
  return () => {
    throw new JinjaError('TemplateRuntimeError', `${message} found`);
  };
}

type EvaluateArgs = (frame: Frame) => Args;

function compileArguments(node: CallArguments, scope: Scope): EvaluateArgs {
  const values = compileItems(node.args, scope);
  const named = node.named.map(({ name, value }) => ({ name, value: compileExpression(value, scope) }));
  const more = node.more === null ? null : compileExpression(node.more, scope);
  const moreNamed = node.moreNamed === null ? null : compileExpression(node.moreNamed, scope);
  if (more === null && moreNamed === null && named.length === 0) {
    if (node.args.length === 0) return () => NO_ARGS;
    return (frame) => ({ values: values(frame), named: null });
  }
  return (frame) => {
    const all = more === null ? values(frame) : [...values(frame), ...listOf(more(frame), frame.run)];
    const byName = new Map<string, Value>();
    for (const { name, value } of named) byName.set(name, value(frame));
    if (moreNamed !== null) addNamed(byName, moreNamed(frame));
    return { values: all, named: byName.size === 0 ? null : byName };
  };
}

function addNamed(byName: Map<string, Value>, more: Value): void {
  if (!(more instanceof Dict))
    throw typeError(`argument after ** must be a mapping, not ${typeNameOf(more)}`);
  for (const [name, value] of more.items()) {
    if (typeof name !== 'string') throw typeError('keywords must be strings');
    if (byName.has(name)) throw typeError(`got multiple values for keyword argument '${name}'`);
    byName.set(name, value);
  }
}

/** A call. @param caller the body of a call block, which is an argument too */
export function compileCall(node: CallNode, scope: Scope, caller: Evaluate | null = null): Evaluate {
  const args = withCaller(compileArguments(node, scope), caller);
  if (node.callee.type !== 'Attribute') {
    const callee = compileExpression(node.callee, scope);
    return (frame) => callValue(callee(frame), frame.run, args(frame));
  }
  scope.program.cost++;
  const object = compileExpression(node.callee.object, scope);
  const { name } = node.callee;
  return (frame) => {
    const value = object(frame);
    const method = methodsOf(value).get(name);
    if (method !== undefined) return method(value as never, frame.run, args(frame));
    return callValue(getAttribute(value, name), frame.run, args(frame));
  };
}

function withCaller(args: EvaluateArgs, caller: Evaluate | null): EvaluateArgs {
  if (caller === null) return args;
  return (frame) => {
    const { values, named } = args(frame);
    return { values, named: new Map([...(named ?? []), ['caller', caller(frame)]]) };
  };
}

function callValue(callee: Value, run: Rendering, args: Args): Value {
  if (callee instanceof Callable) return callee.call(run, args);
  if (callee instanceof Undefined) throw callee.error;
  throw typeError(`'${typeNameOf(callee)}' object is not callable`);
}
