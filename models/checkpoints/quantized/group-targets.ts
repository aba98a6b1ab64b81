import { ModulePattern, type StepBudget } from '../../adapters/module-pattern.js';
import type { ConfigFields } from '../config-fields.js';

/** Steps that all patterns of a model take at most. */
const MAX_STEPS = 20_000_000;
const MAX_TARGETS = 4096;
/** Begins a target that is a regular expression. */
const PATTERN = 're:';

/**
 * What groups of compressed-tensors say of modules. A target is a module's name, a regular expression after "re:" that matches at its beginning, or
 * the name of a class; all modules with matrices are of the class Linear here. As in the library, names and patterns count before classes.
 */
export class GroupTargets<T> {
  readonly #where: string;
  readonly #names = new Map<string, T>();
  readonly #patterns: { pattern: ModulePattern; value: T }[] = [];
  readonly #budget: StepBudget = { left: MAX_STEPS };
  #ofClass: T | undefined;
  #count = 0;

  /** @param where names the file and the setting, for errors */
  constructor(where: string) {
    this.#where = where;
  }

  /** Adds a group with its targets. @throws CheckpointError */
  add(group: ConfigFields, value: T): void {
    const targets = group.raw('targets');
    if (!Array.isArray(targets) || !targets.every((target) => typeof target === 'string'))
      throw group.error('targets', 'a list of names');
    this.#count += targets.length;
    if (this.#count > MAX_TARGETS)
      throw group.error('targets', `at most ${MAX_TARGETS} names over all groups`);
    for (const target of targets as string[]) {
      if (target === 'Linear') this.#ofClass ??= value;
      else if (target.startsWith(PATTERN)) this.#addPattern(target.slice(PATTERN.length), value);
      else if (!this.#names.has(target)) this.#names.set(target, value);
    }
  }

  /** What the groups say of a module; undefined where none has it. @throws CheckpointError where patterns take too many steps */
  of(module: string): T | undefined {
    return (
      this.#names.get(module) ??
      this.#patterns.find(({ pattern }) => pattern.matchesAll(module, this.#budget))?.value ??
      this.#ofClass
    );
  }

  #addPattern(source: string, value: T): void {
    const pattern = new ModulePattern(this.#where, `(?:${source}).*`, source);
    this.#patterns.push({ pattern, value });
  }
}
