import { JinjaError, typeError } from '../errors.js';
import { Namespace } from '../namespace.js';
import type { Rendering } from '../rendering.js';
import type { Expression, ForNode, IfNode, Statement } from '../syntax/nodes.js';
import { listOf } from '../values/iteration.js';
import { textOf } from '../values/repr.js';
import { isTrue, typeNameOf } from '../values/types.js';
import type { Value } from '../values/value.js';
import { compileBlock } from './blocks.js';
import { compileExpression, compileFilter } from './expressions.js';
import { compileFor } from './loops.js';
import { compileCallBlock, compileMacro } from './macros.js';
import {
  type Assign,
  BREAK,
  CONTINUE,
  type Evaluate,
  type Execute,
  measured,
  NEXT,
  type Scope,
} from './scope.js';

/** Makes a function of statements. */
export function compileBody(nodes: readonly Statement[], scope: Scope): Execute {
  const statements = nodes.map((node) => compileStatement(node, scope));
  if (statements.length === 1) return statements[0]!;
  return (frame) => {
    for (const statement of statements) {
      const flow = statement(frame);
      if (flow !== NEXT) return flow;
    }
    return NEXT;
  };
}

function compileStatement(node: Statement, scope: Scope): Execute {
  switch (node.type) {
    case 'Output':
      return compileOutput(node.parts, scope);
    case 'Set':
      return compileSet(node.target, node.value, scope);
    case 'SetBlock':
      return compileSetBlock(node, scope);
    case 'For':
      return compileFor(node satisfies ForNode, scope);
    case 'If':
      return compileIf(node, scope);
    case 'Macro':
      return compileMacro(node, scope);
    case 'CallBlock':
      return compileCallBlock(node, scope);
    case 'FilterBlock':
      return compileFilterBlock(node, scope);
    case 'With':
      return compileWith(node, scope);
    case 'Scope':
      return framed(scope.inner(node.body), node.body);
    case 'Block':
      return compileBlock(node, scope);
    case 'Break':
    case 'Continue':
      return compileJump(node, scope);
    case 'Load':
      return compileLoad(node, scope);
  }
}

/** Makes an expression that counts its steps. */
export function compileCounted(node: Expression, scope: Scope): Evaluate {
  const { made, cost } = measured(scope.program, () => compileExpression(node, scope));
  return (frame) => {
    frame.run.spend(cost + 1);
    return made(frame);
  };
}

function compileOutput(nodes: readonly (string | Expression)[], scope: Scope): Execute {
  const { made: parts, cost } = measured(scope.program, () =>
    nodes.map((node) => (typeof node === 'string' ? node : compileExpression(node, scope))),
  );
  const steps = cost + nodes.length;
  return (frame) => {
    const { run } = frame;
    run.spend(steps);
    for (const part of parts) run.write(typeof part === 'string' ? part : textOf(part(frame), run));
    return NEXT;
  };
}

/** Gives a value to a target. @param exports true where names are seen by the template's blocks */
export function compileTarget(target: Expression, scope: Scope, exports = scope.isTopLevel): Assign {
  if (target.type === 'Name') {
    const { name } = target;
    const write = scope.writer(name);
    if (!exports) return write;
    return (frame, value) => {
      write(frame, value);
      frame.run.exported.set(name, value);
    };
  }
  if (target.type === 'NamespaceTarget') {
    const { attribute } = target;
    const read = scope.reader(target.name);
    return (frame, value) => namespaceOf(read(frame)).set(attribute, value);
  }
  if (target.type !== 'Tuple') throw new JinjaError('TemplateSyntaxError', "can't assign to this");
  const items = target.items.map((item) => compileTarget(item, scope, exports));
  return (frame, value) => {
    const values = unpacked(items.length, listOfValue(value, frame.run));
    for (const [i, assign] of items.entries()) assign(frame, values[i]!);
  };
}

function listOfValue(value: Value, run: Rendering): Value[] {
  try {
    return listOf(value, run);
  } catch (error) {
    if (!(error instanceof JinjaError) || error.kind !== 'TypeError') throw error;
    throw typeError(`cannot unpack non-iterable ${typeNameOf(value)} object`);
  }
}

function unpacked(count: number, values: Value[]): Value[] {
  if (values.length < count) {
    throw new JinjaError(
      'ValueError',
      `not enough values to unpack (expected ${count}, got ${values.length})`,
    );
  }
  if (values.length > count) {
    throw new JinjaError('ValueError', `too many values to unpack (expected ${count})`);
  }
  return values;
}

function namespaceOf(value: Value | undefined): Namespace {
  if (value instanceof Namespace) return value;
  throw new JinjaError('TemplateRuntimeError', 'cannot assign attribute on non-namespace object');
}

/** Namespaces among targets are looked at before the value is computed. */
function compileTargetCheck(
  target: Expression,
  scope: Scope,
): ((frame: Parameters<Execute>[0]) => void) | null {
  if (target.type === 'NamespaceTarget') {
    const read = scope.reader(target.name);
    return (frame) => void namespaceOf(read(frame));
  }
  const checks = target.type === 'Tuple' ? target.items.map((item) => compileTargetCheck(item, scope)) : [];
  const found = checks.filter((check) => check !== null);
  if (found.length === 0) return null;
  return (frame) => {
    for (const check of found) check(frame);
  };
}

function compileSet(target: Expression, node: Expression, scope: Scope): Execute {
  const check = compileTargetCheck(target, scope);
  const assign = compileTarget(target, scope);
  const value = compileCounted(node, scope);
  return (frame) => {
    check?.(frame);
    assign(frame, value(frame));
    return NEXT;
  };
}

function compileSetBlock(node: Statement & { type: 'SetBlock' }, scope: Scope): Execute {
  const inner = scope.inner([...node.body, node.filter]);
  const enter = inner.enter();
  const body = compileBody(node.body, inner);
  let captured = '';
  const filter = node.filter === null ? null : compileCountedFilter(node.filter, inner, () => captured);
  const leave = inner.leave();
  const assign = compileTarget(node.target, scope);
  return (frame) => {
    enter(frame);
    const before = frame.run.beginCapture();
    const flow = body(frame);
    const text = frame.run.endCapture(before);
    if (flow === NEXT) {
      captured = text;
      assign(frame, filter === null ? text : filter(frame));
    }
    leave(frame);
    return flow;
  };
}

function compileCountedFilter(
  node: Parameters<typeof compileFilter>[0],
  scope: Scope,
  text: () => string,
): Evaluate {
  const { made, cost } = measured(scope.program, () => compileFilter(node, scope, text));
  return (frame) => {
    frame.run.spend(cost + 1);
    return made(frame);
  };
}

function compileFilterBlock(node: Statement & { type: 'FilterBlock' }, scope: Scope): Execute {
  const inner = scope.inner([...node.body, node.filter]);
  const enter = inner.enter();
  const body = compileBody(node.body, inner);
  let captured = '';
  const filter = compileCountedFilter(node.filter, inner, () => captured);
  const leave = inner.leave();
  return (frame) => {
    enter(frame);
    const before = frame.run.beginCapture();
    const flow = body(frame);
    captured = frame.run.endCapture(before);
    if (flow === NEXT) frame.run.write(textOf(filter(frame), frame.run));
    leave(frame);
    return flow;
  };
}

function compileIf(node: IfNode, scope: Scope): Execute {
  const inner = scope.conditional();
  const branches = [node, ...node.others].map(({ test, body }) => ({
    test: compileCounted(test, inner),
    body: compileBody(body, inner),
  }));
  const otherwise = compileBody(node.otherwise, inner);
  return (frame) => {
    for (const { test, body } of branches) if (isTrue(test(frame))) return body(frame);
    return otherwise(frame);
  };
}

function compileWith(node: Statement & { type: 'With' }, scope: Scope): Execute {
  const inner = scope.inner([...node.targets, ...node.body]);
  const enter = inner.enter();
  const assignments = node.targets.map((target, i) => ({
    assign: compileTarget(target, inner),
    value: compileCounted(node.values[i]!, scope),
  }));
  const body = compileBody(node.body, inner);
  const leave = inner.leave();
  return (frame) => {
    enter(frame);
    for (const { assign, value } of assignments) assign(frame, value(frame));
    const flow = body(frame);
    leave(frame);
    return flow;
  };
}

/** Statements in a frame of their own. */
export function framed(inner: Scope, nodes: readonly Statement[]): Execute {
  const enter = inner.enter();
  const body = compileBody(nodes, inner);
  const leave = inner.leave();
  return (frame) => {
    enter(frame);
    const flow = body(frame);
    leave(frame);
    return flow;
  };
}

function compileJump({ type, line }: { type: 'Break' | 'Continue'; line: number }, scope: Scope): Execute {
  if (!scope.isInLoop) {
    throw new JinjaError('TemplateSyntaxError', `'${type.toLowerCase()}' outside loop (line ${line})`);
  }
  const flow = type === 'Break' ? BREAK : CONTINUE;
  return () => flow;
}

/** Templates of other files: a chat template is alone. */
function compileLoad(node: Statement & { type: 'Load' }, scope: Scope): Execute {
  compileExpression(node.template, scope);
  if (node.tag === 'extends' && !scope.isTopLevel) {
    throw new JinjaError('TemplateAssertionError', 'cannot use extend from a non top-level scope');
  }
  return () => {
    throw typeError(`it has no other templates to ${node.tag === 'from' ? 'import' : node.tag}`);
  };
}
