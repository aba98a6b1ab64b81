import { JinjaError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { type Expression, type ForNode, walk } from '../syntax/nodes.js';
import { findSymbols, findTargets, findUndeclared } from '../syntax/symbols.js';
import { eachOf } from '../values/iteration.js';
import { isTrue } from '../values/types.js';
import { Lazy, type Value } from '../values/value.js';
import { Loop, LoopValues } from './loop.js';
import {
  BREAK,
  type Evaluate,
  type Execute,
  type Flow,
  type Frame,
  FunctionSlots,
  NEXT,
  Scope,
} from './scope.js';
import { compileBody, compileCounted, compileTarget, framed } from './statements.js';

/** Runs a loop over values; depth0 is that of a recursive one. */
type RunLoop = (frame: Frame, values: Value, depth0: number) => Flow;

export function compileFor(node: ForNode, scope: Scope): Execute {
  checkTargets(node);
  const iterable = compileCounted(node.iterable, scope);
  if (node.isRecursive) return compileRecursive(node, iterable, scope);
  const run = compileLoop(node, scope, null);
  return (frame) => run(frame, iterable(frame), 0);
}

function checkTargets(node: ForNode): void {
  for (const one of walk(node)) {
    if (one.type === 'Name' && one.use === 'store' && one.name === 'loop') {
      throw new JinjaError(
        'TemplateAssertionError',
        "Can't assign to special loop variable in for-loop target",
      );
    }
  }
}

/** A loop that calls itself: a function, whose text is written. */
function compileRecursive(node: ForNode, iterable: Evaluate, scope: Scope): Execute {
  const slots = new FunctionSlots(scope.slots);
  const render = (outer: Frame, values: Value, depth0: number): string => {
    const { run } = outer;
    run.enter();
    const before = run.beginCapture();
    rounds(slots.open(run, outer), values, depth0);
    const text = run.endCapture(before);
    run.leave();
    return text;
  };
  const rounds = compileLoop(node, new Scope(scope.program, scope.symbols, slots), render);
  return (frame) => {
    frame.run.write(render(frame, iterable(frame), 0));
    return NEXT;
  };
}

/**
 * The rounds of a loop. @param scope the frame around it, in the function in which it runs
 * @param render runs a recursive loop again, in the frame where it was defined
 */
function compileLoop(
  node: ForNode,
  scope: Scope,
  render: ((outer: Frame, values: Value, depth0: number) => string) | null,
): RunLoop {
  const inner = scope.inner([], { isInLoop: true });
  const usesLoop = render !== null || needsLoop(node);
  if (usesLoop) inner.symbols.parameter('loop');
  findTargets(inner.symbols, node.target);
  findSymbols(inner.symbols, node.body);
  const enter = inner.enter();
  const assign = compileTarget(node.target, inner, false);
  const setLoop = usesLoop ? inner.writer('loop') : null;
  const body = compileBody(node.body, inner);
  const leave = inner.leave();
  const filter = node.test === null ? null : compileLoopTest(node.target, node.test, scope);
  const otherwise = node.otherwise.length === 0 ? null : framed(scope.inner(node.otherwise), node.otherwise);
  return (frame, iterated, depth0) => {
    const { run, outer } = frame;
    const values = new LoopValues(filter === null ? iterated : filter(frame, iterated), run);
    const recurse =
      render && ((_run: Rendering, others: Value, depth: number) => render(outer!, others, depth));
    const loop = setLoop === null ? null : new Loop(values, recurse, depth0);
    const source = loop ?? values;
    // As in Jinja2, a round that ends early does not count as one for `else`.
    let hasRound = false;
    for (let value = source.next(); value !== undefined; value = source.next()) {
      run.spend(1);
      if (loop !== null) setLoop!(frame, loop);
      assign(frame, value);
      enter(frame);
      const flow = body(frame);
      if (flow === BREAK) break;
      hasRound ||= flow === NEXT;
    }
    leave(frame);
    return otherwise === null || hasRound ? NEXT : otherwise(frame);
  };
}

const needsLoop = (node: ForNode) =>
  findUndeclared(node.body, ['loop']).has('loop') ||
  [...walk(node)].some((one) => one.type === 'Block' && one.isScoped);

/** The condition of a loop, with variables of its own: it is asked when the next value is needed. */
function compileLoopTest(
  target: Expression,
  node: Expression,
  scope: Scope,
): (outer: Frame, values: Value) => Value {
  const inner = scope.innerFunction();
  findTargets(inner.symbols, target);
  findSymbols(inner.symbols, [node]);
  const enter = inner.enter();
  const assign = compileTarget(target, inner, false);
  const test = compileCounted(node, inner);
  function* selected(outer: Frame, values: Value): Generator<Value, void> {
    const frame = inner.slots.open(outer.run, outer);
    enter(frame);
    for (const value of eachOf(values, outer.run)) {
      assign(frame, value);
      if (isTrue(test(frame))) yield value;
    }
  }
  return (outer, values) => new Lazy(selected(outer, values));
}
