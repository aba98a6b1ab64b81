import { SkeinError } from '../../base/skein-error.js';
import { JinjaError } from './errors.js';
import type { Value } from './values/value.js';

/** Limits of a rendering. */
export interface Allowance {
  steps: number;
  /** Most UTF-16 units of a text, or values of a list, that one step may make. */
  unitsPerStep: number;
  /** Most UTF-16 units of any text made on the way, and values of any list. */
  units: number;
}

/** An error for a rendering that exceeded its steps. */
export class StepsError extends SkeinError {
  override name = 'StepsError';
  override readonly code = 'SKEIN_TEMPLATE_STEPS';
}

/** An error for a template that makes a text, or a list, too long for any prompt. */
class GrowthError extends SkeinError {
  override name = 'GrowthError';
  override readonly code = 'SKEIN_TEMPLATE_GROWTH';
}

/** Units of text, or values of a list, that count as one step for the code that makes or reads them. */
const UNITS_PER_STEP = 4096;
/** Values compared, hashed or written one by one that count as one step. */
const VALUES_PER_STEP = 64;
/** Most calls of macros, callers and recursive loops within each other: Python ends at some 190. */
const MAX_DEPTH = 200;

/** Texts of values as JSON that were made before, by value and arguments. */
export interface WrittenTexts {
  has(value: object): boolean;
  get(value: object, args: string): string | undefined;
  set(value: object, args: string, text: string): void;
}

export interface RenderingOptions {
  allowance: Allowance;
  /** Characters that stand for texts of a user, and are written as they are. */
  marks?: ReadonlySet<string>;
  written?: WrittenTexts | undefined;
}

/** One rendering of a template: what was written, and how much work it took. */
export class Rendering {
  /** Text written so far, or since the innermost capture began. */
  out = '';
  readonly variables: Map<string, Value>;
  /** Variables that the template set at its top level. */
  readonly exported = new Map<string, Value>();
  readonly marks: ReadonlySet<string> | null;
  readonly written: WrittenTexts | null;
  readonly #allowance: Allowance;
  #steps = 0;
  #depth = 0;

  constructor(variables: Map<string, Value>, { allowance, marks, written }: RenderingOptions) {
    this.variables = variables;
    this.marks = marks === undefined || marks.size === 0 ? null : marks;
    this.written = written ?? null;
    this.#allowance = allowance;
  }

  /** A variable that no frame of the template has. */
  resolve(name: string): Value | undefined {
    const exported = this.exported.get(name);
    return exported === undefined ? this.variables.get(name) : exported;
  }

  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#allowance.steps) {
      throw new StepsError(`it took more than ${this.#allowance.steps} steps`);
    }
  }

  /** Counts reading `units` units of a text, or values of a list, at once. */
  read(units: number): void {
    if (units >= UNITS_PER_STEP) this.spend(Math.floor(units / UNITS_PER_STEP));
  }

  /** Counts a walk over values, each of which takes a call. */
  walk(values: number): void {
    this.spend(values / VALUES_PER_STEP);
  }

  /** Checks and counts a text of `units` UTF-16 units, or a list of `units` values, before it is made. */
  make(units: number): void {
    this.check(units);
    this.read(units);
  }

  /** Checks the length of what is being made, without counting it. */
  check(units: number): void {
    const { units: most, unitsPerStep } = this.#allowance;
    if (units > unitsPerStep) throw new StepsError('a step of it may take long');
    if (units > most) {
      throw new GrowthError(`it makes a text or list of ${units}; ${most} is the limit for these messages`);
    }
  }

  write(text: string): void {
    this.out += text;
    if (this.out.length > this.#allowance.units) this.check(this.out.length);
  }

  /** Begins to capture what is written. Returns what was written before, for `endCapture`. */
  beginCapture(): string {
    const before = this.out;
    this.out = '';
    return before;
  }

  /** Ends a capture, and returns what was written in it. */
  endCapture(before: string): string {
    const captured = this.out;
    this.out = before;
    this.make(captured.length);
    return captured;
  }

  /** Begins a call within others. @throws JinjaError where there are too many. */
  enter(): void {
    if (++this.#depth > MAX_DEPTH) {
      throw new JinjaError('RecursionError', `its calls are nested more than ${MAX_DEPTH} deep`);
    }
  }

  leave(): void {
    this.#depth--;
  }
}
