import { type FaultKind, JinjaError } from '../errors.js';
import { reprOf } from './repr.js';
import { typeNameOf } from './types.js';
import { PyObject, type Value } from './value.js';

interface UndefinedSource {
  /** What it is an attribute or element of. */
  of?: Value;
  /** Its name or key. */
  name?: Value;
  /** Reason in place of the usual one. */
  hint?: string;
  kind?: FaultKind;
}

/** Jinja2's Undefined: can be printed, looped over and used as a condition; everything else fails. */
export class Undefined extends PyObject {
  override readonly typeName = 'Undefined';
  readonly #source: UndefinedSource;

  constructor(source: UndefinedSource) {
    super();
    this.#source = source;
  }

  override get truth(): boolean {
    return false;
  }

  override repr(): string {
    return 'Undefined';
  }

  /** The error for an operation that needs a value. */
  get error(): JinjaError {
    return new JinjaError(this.#source.kind ?? 'UndefinedError', this.#message);
  }

  get #message(): string {
    const { of, name = null, hint } = this.#source;
    if (hint !== undefined) return hint;
    if (of === undefined) return `${reprOf(name)} is undefined`;
    const owner = of === null ? 'None' : `${typeNameOf(of)} object`;
    if (typeof name !== 'string') return `${owner} has no element ${reprOf(name)}`;
    return `'${owner}' has no attribute ${reprOf(name)}`;
  }
}
