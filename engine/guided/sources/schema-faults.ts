import { asClause } from '../../../base/sentences.js';
import { GuideError } from '../guide-error.js';

/** Most parts of a schema that are named as left out. */
const MAX_LEFT_OUT = 20;

/** A part of a schema that cannot be followed. */
export function fault(path: string, what: string): GuideError {
  const clause = clauseOf(path, what);
  return new GuideError(`The JSON schema is refused ${clause}.`, clause);
}

function clauseOf(path: string, what: string): string {
  return `at ${placeOf(path)}: ${what}`;
}

function placeOf(path: string): string {
  if (path === '') return 'its root';
  return path.length > 200 ? `${path.slice(0, 200)}...` : path;
}

/** What to do with a part of a schema that cannot be followed: refuse the schema, or leave the part out and note it. */
export class SchemaFaults {
  /** Sentences about the parts that were left out, each once. */
  readonly leftOut = new Set<string>();
  readonly #isStrict: boolean;

  constructor(isStrict: boolean) {
    this.#isStrict = isStrict;
  }

  /** Notes a part that cannot be followed. @throws GuideError where the schema has to be followed as a whole */
  unsupported(path: string, what: string): void {
    if (this.#isStrict) throw fault(path, what);
    this.#leaveOut(clauseOf(path, what));
  }

  /** What `read` returns; `without` it where it throws a GuideError, which is noted. */
  attempt<T>(read: () => T, without: () => T): T {
    if (this.#isStrict) return read();
    try {
      return read();
    } catch (error) {
      if (!(error instanceof GuideError) || error.code !== 'SKEIN_GUIDE') throw error;
      this.#leaveOut(error.clause ?? asClause(error.message));
      return without();
    }
  }

  #leaveOut(clause: string): void {
    if (this.leftOut.size < MAX_LEFT_OUT) this.leftOut.add(clause);
  }
}
