import { typeError } from './errors.js';
import type { Rendering } from './rendering.js';
import { PyObject, type Value } from './values/value.js';

/** Arguments of a call. */
export interface Args {
  readonly values: readonly Value[];
  /** Arguments by name; null: there are none. */
  readonly named: ReadonlyMap<string, Value> | null;
}

export const NO_ARGS: Args = { values: [], named: null };

/** A value that can be called. */
export abstract class Callable extends PyObject {
  abstract call(run: Rendering, args: Args): Value;
}

/** A function of the interpreter, or a method with its object. */
export class Builtin extends Callable {
  override readonly typeName = 'function';
  readonly name: string;
  readonly #implementation: (run: Rendering, args: Args) => Value;

  constructor(name: string, implementation: (run: Rendering, args: Args) => Value) {
    super();
    this.name = name;
    this.#implementation = implementation;
  }

  override call(run: Rendering, args: Args): Value {
    return this.#implementation(run, args);
  }

  override repr(): string {
    return `<function ${this.name}>`;
  }
}

/** A parameter: its name alone where it must be given, else with its default. */
export type Parameter = string | readonly [name: string, fallback: Value];

/** Gives arguments to parameters as Python does. @throws JinjaError where they do not fit. */
export function bind(name: string, parameters: readonly Parameter[], { values, named }: Args): Value[] {
  if (values.length > parameters.length) {
    throw typeError(
      `${name}() takes at most ${parameters.length} argument${parameters.length === 1 ? '' : 's'} (${values.length} given)`,
    );
  }
  if (named !== null) checkNames(name, parameters, values.length, named);
  return parameters.map((parameter, i) => {
    if (i < values.length) return values[i]!;
    const called = typeof parameter === 'string' ? parameter : parameter[0];
    const given = named?.get(called);
    if (given !== undefined) return given;
    if (typeof parameter !== 'string') return parameter[1];
    throw typeError(`${name}() missing required argument: '${called}'`);
  });
}

function checkNames(
  name: string,
  parameters: readonly Parameter[],
  count: number,
  named: ReadonlyMap<string, Value>,
): void {
  for (const given of named.keys()) {
    const at = parameters.findIndex((one) => (typeof one === 'string' ? one : one[0]) === given);
    if (at < 0) throw typeError(`${name}() got an unexpected keyword argument '${given}'`);
    if (at < count) throw typeError(`${name}() got multiple values for argument '${given}'`);
  }
}

/** Arguments of a function that takes none by name. @param most how many it takes */
export function positional(
  name: string,
  { values, named }: Args,
  least: number,
  most = least,
): readonly Value[] {
  if (named !== null) throw typeError(`${name}() takes no keyword arguments`);
  if (values.length < least || values.length > most) {
    const expected =
      least === most ? `exactly ${least}` : values.length < least ? `at least ${least}` : `at most ${most}`;
    throw typeError(
      `${name}() takes ${expected} argument${expected.endsWith(' 1') ? '' : 's'} (${values.length} given)`,
    );
  }
  return values;
}
