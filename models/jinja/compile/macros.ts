import { type Callable, NO_ARGS } from '../calls.js';
import { JinjaError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import type { CallBlockNode, MacroNode } from '../syntax/nodes.js';
import { findSymbols, findUndeclared } from '../syntax/symbols.js';
import { textOf } from '../values/repr.js';
import { Undefined } from '../values/undefined.js';
import type { Value } from '../values/value.js';
import { compileCall } from './expressions.js';
import { Macro, type MacroShape } from './macro.js';
import { type Evaluate, type Execute, type Frame, measured, NEXT, type Scope } from './scope.js';
import { compileBody, compileCounted, compileTarget } from './statements.js';

/** Variables that a body has as soon as it reads them. */
const SPECIAL = ['caller', 'kwargs', 'varargs'];

export function compileMacro(node: MacroNode, scope: Scope): Execute {
  const make = compileFunction(node, node.name, scope);
  const assign = compileTarget({ type: 'Name', name: node.name, use: 'store' }, scope);
  return (frame) => {
    frame.run.spend(1);
    assign(frame, make(frame));
    return NEXT;
  };
}

export function compileCallBlock(node: CallBlockNode, scope: Scope): Execute {
  const caller = compileFunction(node, null, scope);
  const { made: call, cost } = measured(scope.program, () =>
    node.call === null ? calling(caller) : compileCall(node.call, scope, caller),
  );
  return (frame) => {
    const { run } = frame;
    run.spend(cost + 1);
    run.write(textOf(call(frame), run));
    return NEXT;
  };
}

const calling =
  (caller: Evaluate): Evaluate =>
  (frame) =>
    (caller(frame) as Callable).call(frame.run, NO_ARGS);

/** Makes a macro in the frame in which it is defined. */
function compileFunction(node: MacroNode | CallBlockNode, name: string | null, scope: Scope): Evaluate {
  const inner = scope.innerFunction();
  const nodes = [...node.parameters, ...node.defaults, ...node.body];
  findSymbols(inner.symbols, nodes);
  const names = node.parameters.map((parameter) => parameter.name);
  const used = findUndeclared(node.body, SPECIAL);
  const shape: MacroShape = {
    name,
    parameters: names,
    usesCaller: used.has('caller'),
    usesKwargs: used.has('kwargs') && !names.includes('kwargs'),
    usesVarargs: used.has('varargs') && !names.includes('varargs'),
  };
  checkCaller(node, shape);
  const extra = [
    ...(shape.usesCaller && !names.includes('caller') ? ['caller'] : []),
    ...(shape.usesKwargs ? ['kwargs'] : []),
    ...(shape.usesVarargs ? ['varargs'] : []),
  ];
  for (const one of extra) inner.symbols.parameter(one);
  findSymbols(inner.symbols, nodes);
  const enter = inner.enter();
  const writers = [...names, ...extra].map((one) => inner.writer(one));
  const defaults = compileDefaults(node, inner);
  const body = compileBody(node.body, inner);
  const invoke = (run: Rendering, outer: Frame, values: readonly (Value | undefined)[]): Value => {
    const frame = inner.slots.open(run, outer);
    for (const [i, write] of writers.entries()) if (values[i] !== undefined) write(frame, values[i]!);
    const before = run.beginCapture();
    enter(frame);
    for (const [i, fallback] of defaults.entries()) {
      if (values[i] === undefined) writers[i]!(frame, fallback(frame));
    }
    body(frame);
    return run.endCapture(before);
  };
  return (outer) => new Macro(shape, (run, values) => invoke(run, outer, values));
}

/** A parameter called caller has to have a default. */
function checkCaller({ parameters, defaults }: MacroNode | CallBlockNode, { usesCaller }: MacroShape): void {
  const at = parameters.findIndex(({ name }) => name === 'caller');
  if (!usesCaller || at < 0 || parameters.length - at <= defaults.length) return;
  throw new JinjaError(
    'TemplateAssertionError',
    'When defining macros or call blocks the special "caller" argument must be omitted or be given a default.',
  );
}

/** For each parameter what it is where no argument was given. */
function compileDefaults({ parameters, defaults }: MacroNode | CallBlockNode, inner: Scope): Evaluate[] {
  const first = parameters.length - defaults.length;
  return parameters.map(({ name }, i) => {
    if (i >= first) return compileCounted(defaults[i - first]!, inner);
    return () => new Undefined({ name, hint: `parameter '${name}' was not provided` });
  });
}
