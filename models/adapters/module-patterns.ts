import { CheckpointError } from '../checkpoints/checkpoint.js';
import { ModulePattern, type StepBudget } from './module-pattern.js';

/** A key without characters that mean something in a regular expression, except the point. */
const PLAIN = /^[\w.]*$/;

/**
 * The keys of rank_pattern or alpha_pattern with their values. A key fits a module as in PEFT: it is a regular expression
 * for the end of the module's whole name, from its beginning or after a point; of several keys the first
 * counts.
 *
 *   key `q_proj`, `0.self_attn.q_proj` or `.*.0.*proj`  fits  model.layers.0.self_attn.q_proj
 */
export class ModulePatterns {
  readonly #where: string;
  readonly #budget: StepBudget;
  readonly #keys: { fits: (module: string) => boolean; value: number }[];

  /**
   * `where` names file and setting, for errors; `budget` bounds the work of all patterns of an adapter together.
   * @throws CheckpointError for a key that is no regular expression, or has parts that are not known here.
   */
  constructor(where: string, values: Iterable<readonly [string, number]>, budget: StepBudget) {
    this.#where = where;
    this.#budget = budget;
    this.#keys = Array.from(values, ([key, value]) => ({ fits: this.#fitting(key), value }));
  }

  /** Value of the first key that fits a module; undefined where none does. */
  valueOf(module: string): number | undefined {
    for (const { fits, value } of this.#keys) {
      if (fits(module)) return value;
    }
    return undefined;
  }

  #fitting(key: string): (module: string) => boolean {
    if (PLAIN.test(key)) return (module) => this.#plainFits(key, module);
    // Alone first, so that its parentheses close within it.
    new ModulePattern(this.#where, key);
    const pattern = new ModulePattern(this.#where, `(.*\\.)?(${key})$`, key);
    return (module) => pattern.matchesAll(module, this.#budget);
  }

  #plainFits(key: string, module: string): boolean {
    const start = module.length - key.length;
    const begins = start === 0 || (start > 0 && module[start - 1] === '.');
    let i = key.length;
    while (begins && i > 0 && (key[i - 1] === '.' || key[i - 1] === module[start + i - 1])) i--;
    this.#budget.left -= 1 + key.length - i;
    if (this.#budget.left < 0) {
      throw new CheckpointError(`${this.#where}: its patterns take too many steps.`);
    }
    return begins && i === 0;
  }
}
