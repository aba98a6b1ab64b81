import { type Environment, Interpreter } from '@huggingface/jinja';
import { SkeinError } from '../base/skein-error.js';
import type { TemplateValue, WrittenValues } from './known-tools.js';

/**
 * Most steps of a rendering: fifty for each of the ten thousand messages of a very long conversation. A template that
 * takes more probably loops without end, which would stop the server.
 */
export const MAX_TEMPLATE_STEPS = 500_000;

/** Most numbers of one range(). */
const MAX_RANGE = 100_000;
/** Units of text, or values of a list, that count as one step for the code that makes them. */
const UNITS_PER_STEP = 4096;
/** Most spaces that a template may indent by. */
const MAX_INDENT = 64;
/** Filters and methods that make a long text of short ones in one step. */
const GROWING = new Set(['replace', 'join', 'indent']);
/** Most units of a text that such a filter or method may handle in a quick rendering. */
const QUICK_UNITS = 4096;

/** Limits of a rendering. */
export interface Allowance {
  steps: number;
  /** True where one step may make much longer texts of long ones. */
  grows: boolean;
}

/** An error for a rendering that exceeded its limits. */
export class StepsError extends SkeinError {
  override name = 'StepsError';
  override readonly code = 'SKEIN_TEMPLATE_STEPS';
}

/** An error for a template that makes a text, or a list, too long for any prompt. */
class GrowthError extends SkeinError {
  override name = 'GrowthError';
  override readonly code = 'SKEIN_TEMPLATE_GROWTH';
}

/** Counts a rendering's work, and ends it at the limit. */
export class RenderingCount {
  readonly #allowed: Allowance;
  readonly #maxUnits: number;
  #steps = 0;

  /** @param maxUnits most UTF-16 units of any text made on the way, and values of any list */
  constructor(allowed: Allowance, maxUnits: number) {
    this.#allowed = allowed;
    this.#maxUnits = maxUnits;
  }

  spend(steps: number): void {
    this.#steps += steps;
    const { steps: most } = this.#allowed;
    if (this.#steps > most) throw new StepsError(`it took more than ${most} steps`);
  }

  /** Counts the result of a step. @param units UTF-16 units of a text, or values of a list */
  made(units: number): void {
    if (units > this.#maxUnits) {
      throw new GrowthError(
        `it makes a text or list of ${units}; ${this.#maxUnits} is the limit for these messages`,
      );
    }
    this.spend(Math.floor(units / UNITS_PER_STEP));
  }

  /** Checks a step that may make a text as long as the product of two such lengths, before it runs. */
  grow(units: number): void {
    if (!this.#allowed.grows && units > QUICK_UNITS) throw new StepsError('a step of it may take long');
  }
}

type JinjaValue = TemplateValue;

interface ArgumentNode {
  type?: string;
  key?: { value?: string };
  value?: unknown;
}

interface FilterNode {
  type: string;
  value?: string;
  callee?: { value?: string };
  args?: ArgumentNode[];
}

interface CallNode {
  callee?: { object?: object; property?: { value?: string } };
}

/** Methods of the library's interpreter that are watched. */
interface Watched {
  evaluate(node: object, environment: Environment): JinjaValue;
  evaluateBlock(...args: unknown[]): JinjaValue;
  applyFilter(operand: JinjaValue, filter: FilterNode, environment: Environment): JinjaValue;
  evaluateCallExpression(node: CallNode, environment: Environment): JinjaValue;
}

/**
 * Makes an interpreter that counts evaluations, rounds of loops, which may evaluate nothing, and the lengths of
 * results. @param written texts of values as JSON, which are not made again
 */
export function countingInterpreter(
  environment: Environment,
  count: RenderingCount,
  written?: WrittenValues,
): Interpreter {
  const interpreter = new Interpreter(environment);
  const watched = interpreter as unknown as Watched;
  // Nodes are judged when they are evaluated anyway: evaluating one twice could take two values from a list.
  const growing = new WeakSet<object>();
  const widths = new WeakSet<object>();
  const evaluate = watched.evaluate.bind(interpreter);
  watched.evaluate = (node, scope) => {
    count.spend(1);
    const made = evaluate(node, scope);
    count.made(lengthOf(made));
    if (growing.has(node)) count.grow(lengthOf(made));
    if (widths.has(node)) checkWidth(made);
    return made;
  };
  const evaluateBlock = watched.evaluateBlock.bind(interpreter);
  watched.evaluateBlock = (...args) => {
    count.spend(1);
    const made = evaluateBlock(...args);
    count.made(lengthOf(made));
    return made;
  };
  const applyFilter = watched.applyFilter.bind(interpreter);
  watched.applyFilter = (operand, filter, scope) => {
    const name = filter.callee?.value ?? filter.value ?? '';
    if (GROWING.has(name)) count.grow(lengthOf(operand));
    if (name === 'indent' || name === 'tojson') {
      // Every number among the arguments counts: only the library knows which one is the width.
      for (const arg of filter.args ?? []) {
        widths.add(arg.type === 'KeywordArgumentExpression' ? (arg.value as object) : arg);
      }
    }
    const args = name === 'tojson' && written?.has(operand) ? plainArguments(filter, scope) : null;
    if (args === null) return applyFilter(operand, filter, scope);
    const known = written!.get(operand, args.key);
    if (known === undefined) {
      const made = applyFilter(operand, filter, scope);
      written!.set(operand, args.key, made);
      return made;
    }
    // They count as where the text is made.
    for (const node of args.nodes) watched.evaluate(node, scope);
    return known;
  };
  const evaluateCall = watched.evaluateCallExpression.bind(interpreter);
  watched.evaluateCallExpression = (node, scope) => {
    const { callee } = node;
    if (callee?.object !== undefined && GROWING.has(callee.property?.value ?? '')) growing.add(callee.object);
    return evaluateCall(node, scope);
  };
  return interpreter;
}

/**
 * Arguments of a filter that are literals or variables, whose evaluation changes nothing, and one text for all; null: others, or
 * values with values in them.
 */
function plainArguments(
  { args = [] }: FilterNode,
  environment: Environment,
): { key: string; nodes: object[] } | null {
  const nodes: object[] = [];
  const parts: unknown[] = [];
  for (const { type, key, value } of args) {
    if (type !== 'KeywordArgumentExpression') return null;
    const node = value as ArgumentNode;
    if (node.type === 'Identifier') {
      const found = environment.lookupVariable(String(node.value));
      if (typeof found.value === 'object' && found.value !== null) return null;
      parts.push(key?.value, found.type, found.value);
    } else if (LITERALS.has(node.type ?? '')) parts.push(key?.value, node.type, node.value);
    else return null;
    nodes.push(node);
  }
  return { key: JSON.stringify(parts), nodes };
}

const LITERALS: ReadonlySet<string> = new Set(['IntegerLiteral', 'StringLiteral']);

function checkWidth({ value }: JinjaValue): void {
  if (typeof value === 'number' && value > MAX_INDENT) {
    throw new GrowthError(`it indents by ${value} spaces; ${MAX_INDENT} is the limit`);
  }
}

function lengthOf({ value }: JinjaValue): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return value instanceof Map ? value.size : 0;
}

/** UTF-16 units of all texts of a JSON value, names included, plus 1 for each value. */
export function textUnits(value: unknown): number {
  let units = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const one = open.pop();
    units++;
    if (typeof one === 'string') units += one.length;
    else if (Array.isArray(one)) for (const item of one) open.push(item);
    else if (typeof one === 'object' && one !== null) {
      for (const [name, item] of Object.entries(one)) {
        units += name.length;
        open.push(item);
      }
    }
  }
  return units;
}

/** Python's range as an array. */
export function range(first: number, second?: number | null, step = 1): number[] {
  const [start, stop] = second === undefined || second === null ? [0, first] : [first, second];
  if (step === 0) throw new Error('range() step must not be zero');
  const length = (stop - start) / step;
  if (length > MAX_RANGE) throw new Error(`range() of ${length} numbers; ${MAX_RANGE} is the limit`);
  const numbers: number[] = [];
  for (let value = start; step > 0 ? value < stop : value > stop; value += step) numbers.push(value);
  return numbers;
}
