import { TextTest } from '../texts/text-graph.js';
import type { TextSet } from '../texts/text-set.js';
import { regexTexts } from './regex.js';
import type { JsonValue, SchemaObject } from './schema-keywords.js';

/** The patterns of a schema, each read once. */
export class SchemaPatterns {
  readonly #sets = new Map<string, TextSet>();
  readonly #tests = new Map<string, TextTest>();

  /** Texts in which the pattern is found. @throws GuideError */
  texts(pattern: string): TextSet {
    let set = this.#sets.get(pattern);
    if (set === undefined) {
      set = regexTexts(pattern, { mode: 'search' });
      this.#sets.set(pattern, set);
    }
    return set;
  }

  matches(pattern: string, text: string): boolean {
    let test = this.#tests.get(pattern);
    if (test === undefined) {
      test = new TextTest(this.texts(pattern));
      this.#tests.set(pattern, test);
    }
    return test.has(text);
  }

  /** What an object's schema says of a property that it does not list; undefined: nothing. */
  schemaOfOther(schema: SchemaObject, name: string): JsonValue | undefined {
    const matching = this.ofPatterns(schema, name);
    if (matching.length === 0) return schema.additionalProperties;
    return matching.length === 1 ? matching[0]! : { allOf: matching };
  }

  /** What the patterns of names say of a property. */
  ofPatterns({ patternProperties }: SchemaObject, name: string): JsonValue[] {
    const patterns = Object.entries((patternProperties ?? {}) as { [pattern: string]: JsonValue });
    return patterns.flatMap(([pattern, schema]) => (this.matches(pattern, name) ? [schema] : []));
  }
}
