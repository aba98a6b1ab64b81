import { type Environment, Interpreter } from '@huggingface/jinja';
import { SkeinError } from '../base/skein-error.js';

/**
 * Steps that a rendering may take: fifty for each of the ten thousand messages of a very long conversation. A template that takes
 * more loops without an end, and the server with it.
 */
export const MAX_TEMPLATE_STEPS = 500_000;

/** Numbers of one range(). */
const MAX_RANGE = 100_000;
/** Units of text, or values of a list, that count as one more step to whoever makes them. */
const UNITS_PER_STEP = 4096;
/** Spaces that a template may indent by. */
const MAX_INDENT = 64;
/** Filters and methods that make a long text of short ones in one step. */
const GROWING = new Set(['replace', 'join', 'indent']);
/** Units of a text that one of them has to do with where a rendering should be quick. */
const QUICK_UNITS = 4096;

/** What a rendering may take. */
export interface Allowance {
  steps: number;
  /** Whether one step may have to do with long texts in a way that makes much longer ones. */
  grows: boolean;
}

/** A rendering took more than it may. */
export class StepsError extends SkeinError {
  override name = 'StepsError';
  override readonly code = 'SKEIN_TEMPLATE_STEPS';
}

/** A template makes a text, or a list, that no prompt is. */
class GrowthError extends SkeinError {
  override name = 'GrowthError';
  override readonly code = 'SKEIN_TEMPLATE_GROWTH';
}

/** Counts what a rendering does, and gives up. */
export class RenderingCount {
  readonly #allowed: Allowance;
  readonly #maxUnits: number;
  #steps = 0;

  /** @param maxUnits UTF-16 units of any text that it makes on its way, and values of any list */
  constructor(allowed: Allowance, maxUnits: number) {
    this.#allowed = allowed;
    this.#maxUnits = maxUnits;
  }

  spend(steps: number): void {
    this.#steps += steps;
    const { steps: most } = this.#allowed;
    if (this.#steps > most) throw new StepsError(`it took more than ${most} steps`);
  }

  /** @param units of a text, or values of a list, that a step made */
  made(units: number): void {
    if (units > this.#maxUnits) {
      throw new GrowthError(
        `it makes a text or list of ${units}; ${this.#maxUnits} is the limit for these messages`,
      );
    }
    this.spend(Math.floor(units / UNITS_PER_STEP));
  }

  /** Before a step that may make a text as long as the product of two such lengths. */
  grow(units: number): void {
    if (!this.#allowed.grows && units > QUICK_UNITS) throw new StepsError('a step of it may take long');
  }
}

interface JinjaValue {
  value?: unknown;
}

interface FilterNode {
  type: string;
  value?: string;
  callee?: { value?: string };
  args?: { type?: string; value?: object }[];
}

interface CallNode {
  callee?: { object?: object; property?: { value?: string } };
}

/** The methods of the library's interpreter that are watched here. */
interface Watched {
  evaluate(node: object, environment: Environment): JinjaValue;
  evaluateBlock(...args: unknown[]): JinjaValue;
  applyFilter(operand: JinjaValue, filter: FilterNode, environment: Environment): JinjaValue;
  evaluateCallExpression(node: CallNode, environment: Environment): JinjaValue;
}

/**
 * An interpreter that counts what it evaluates, the rounds of loops, in which there may be nothing to evaluate, and how long
 * what it makes is.
 */
export function countingInterpreter(environment: Environment, count: RenderingCount): Interpreter {
  const interpreter = new Interpreter(environment);
  const watched = interpreter as unknown as Watched;
  // Nodes are judged where they are evaluated anyway: to evaluate one twice could take two values from a list.
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
      // Every number among the arguments counts: which of them the width is, the library alone knows.
      for (const arg of filter.args ?? []) {
        widths.add(arg.type === 'KeywordArgumentExpression' ? arg.value! : arg);
      }
    }
    return applyFilter(operand, filter, scope);
  };
  const evaluateCall = watched.evaluateCallExpression.bind(interpreter);
  watched.evaluateCallExpression = (node, scope) => {
    const { callee } = node;
    if (callee?.object !== undefined && GROWING.has(callee.property?.value ?? '')) growing.add(callee.object);
    return evaluateCall(node, scope);
  };
  return interpreter;
}

function checkWidth({ value }: JinjaValue): void {
  if (typeof value === 'number' && value > MAX_INDENT) {
    throw new GrowthError(`it indents by ${value} spaces; ${MAX_INDENT} is the limit`);
  }
}

function lengthOf({ value }: JinjaValue): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return value instanceof Map ? value.size : 0;
}

/** UTF-16 units of all texts of a JSON value, names included, and one for each value. */
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

/** Python's range, as an array. */
export function range(first: number, second?: number | null, step = 1): number[] {
  const [start, stop] = second === undefined || second === null ? [0, first] : [first, second];
  if (step === 0) throw new Error('range() step must not be zero');
  const length = (stop - start) / step;
  if (length > MAX_RANGE) throw new Error(`range() of ${length} numbers; ${MAX_RANGE} is the limit`);
  const numbers: number[] = [];
  for (let value = start; step > 0 ? value < stop : value > stop; value += step) numbers.push(value);
  return numbers;
}
