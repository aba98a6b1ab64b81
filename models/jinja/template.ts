import { TemplateReference } from './compile/blocks.js';
import { type Execute, FunctionSlots, type Program, Scope } from './compile/scope.js';
import { compileBody } from './compile/statements.js';
import './filters/index.js';
import type { Rendering } from './rendering.js';
import type { Statement } from './syntax/nodes.js';
import { parse } from './syntax/parser.js';
import { findSymbols, findUndeclared, Symbols } from './syntax/symbols.js';

/**
 * A template of Jinja2, set up as transformers does for chats: trim_blocks, lstrip_blocks, loop controls, the block
 * `generation`, the immutable sandbox. It is parsed and compiled to functions once, and rendered many times.
 */
export class Template {
  /** The template as it was parsed. */
  readonly statements: readonly Statement[];
  readonly #run: (run: Rendering) => void;

  /** @throws JinjaError where the source is no template. */
  constructor(source: string) {
    const statements = parse(source);
    this.statements = statements;
    this.#run = compileTemplate(statements);
  }

  /** Renders the template with the variables of a rendering. @throws JinjaError, StepsError, GrowthError, NotAvailableError */
  render(run: Rendering): string {
    this.#run(run);
    return run.out;
  }
}

function compileTemplate(statements: readonly Statement[]): (run: Rendering) => void {
  const program: Program = { cost: 0, blocks: new Map() };
  const slots = new FunctionSlots(null);
  const scope = new Scope(program, new Symbols(), slots, { isTopLevel: true });
  const usesSelf = findUndeclared(statements, ['self']).has('self');
  if (usesSelf) scope.symbols.parameter('self');
  findSymbols(scope.symbols, statements);
  const enter = scope.enter();
  const setSelf = usesSelf ? scope.writer('self') : null;
  const body: Execute = compileBody(statements, scope);
  return (run) => {
    const frame = slots.open(run, null);
    setSelf?.(frame, new TemplateReference(program.blocks));
    enter(frame);
    body(frame);
  };
}
