import { Builtin } from '../calls.js';
import { JinjaError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import type { BlockNode } from '../syntax/nodes.js';
import { findSymbols, findUndeclared, Symbols } from '../syntax/symbols.js';
import { Undefined } from '../values/undefined.js';
import { PyObject, type Value } from '../values/value.js';
import { type Execute, type Frame, FunctionSlots, NEXT, type Program, Scope } from './scope.js';
import { compileBody } from './statements.js';

/** The variable `self`: the template's blocks, each as a function. */
export class TemplateReference extends PyObject {
  override readonly typeName = 'TemplateReference';
  readonly #blocks: Program['blocks'];

  constructor(blocks: Program['blocks']) {
    super();
    this.#blocks = blocks;
  }

  override attribute(name: string): Value | undefined {
    const block = this.#blocks.get(name);
    if (block === undefined) return undefined;
    return new Builtin(name, (run) => {
      const before = run.beginCapture();
      run.enter();
      block(run);
      run.leave();
      return run.endCapture(before);
    });
  }
}

/** A block: no other template replaces it, so it is written where it stands. */
export function compileBlock(node: BlockNode, scope: Scope): Execute {
  const { program } = scope;
  if (program.blocks.has(node.name)) {
    throw new JinjaError('TemplateAssertionError', `block '${node.name}' defined twice`);
  }
  const run = compileBlockBody(node, program);
  program.blocks.set(node.name, run);
  const visible = node.isScoped ? visibleIn(scope) : null;
  return (frame) => {
    frame.run.spend(1);
    if (node.isRequired) {
      throw new JinjaError('TemplateRuntimeError', `Required block '${node.name}' not found`);
    }
    if (visible === null) run(frame.run);
    else withVariables(frame, visible, run);
    return NEXT;
  };
}

function compileBlockBody(node: BlockNode, program: Program): (run: Rendering) => void {
  const slots = new FunctionSlots(null);
  const scope = new Scope(program, new Symbols(), slots);
  const used = findUndeclared(node.body, ['self', 'super']);
  for (const name of used) scope.symbols.parameter(name);
  findSymbols(scope.symbols, node.body);
  const enter = scope.enter();
  const writers = Array.from(used, (name) => ({ name, write: scope.writer(name) }));
  const body = compileBody(node.body, scope);
  const hint = `there is no parent block called '${node.name}'.`;
  return (run) => {
    const frame = slots.open(run, null);
    for (const { name, write } of writers) {
      write(frame, name === 'self' ? new TemplateReference(program.blocks) : new Undefined({ name, hint }));
    }
    enter(frame);
    body(frame);
  };
}

/** Variables of the frames around a block, by name. */
function visibleIn(scope: Scope): { name: string; read: (frame: Frame) => Value | undefined }[] {
  const names = new Set<string>();
  for (let symbols: Symbols | null = scope.symbols; symbols !== null; symbols = symbols.parent) {
    for (const name of symbols.stores) names.add(name);
  }
  return Array.from(names, (name) => ({ name, read: scope.reader(name) }));
}

function withVariables(
  frame: Frame,
  visible: ReturnType<typeof visibleIn>,
  run: (run: Rendering) => void,
): void {
  const { exported } = frame.run;
  const before = new Map(exported);
  for (const { name, read } of visible) {
    const value = read(frame);
    if (value !== undefined) exported.set(name, value);
  }
  run(frame.run);
  exported.clear();
  for (const [name, value] of before) exported.set(name, value);
}
