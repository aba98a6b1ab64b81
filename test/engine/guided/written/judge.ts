import { type Draft, newValidator } from '../../../../tools/guided-soak/validator.js';
import { Random } from '../../../../tools/soak/random.js';
import { matcherOf, matches } from '../follow.js';
import { randomText } from '../random-text.js';

/** A schema as a library makes it, with values that it takes. */
export interface WrittenSchema {
  name: string;
  schema: object;
  values: readonly unknown[];
  /** Draft of JSON Schema. Default: 2020-12. */
  draft?: Draft;
}

/** Bytes after which a random text goes to its end. */
const MAX_WALK = 400;

function validatorOf({ schema, draft }: WrittenSchema): (value: unknown) => boolean {
  const { $schema: _, ...own } = schema as { $schema?: string };
  return newValidator(draft).compile(own);
}

/** Numbers have at most 15 digits in guides; larger ones that come with an exponent are written otherwise. */
function hasLargeNumber(value: unknown): boolean {
  if (typeof value === 'number') return Math.abs(value) >= 1e15;
  return typeof value === 'object' && value !== null && Object.values(value).some(hasLargeNumber);
}

/** A value as JSON.stringify, indented, and Python's json.dumps write it. */
function writtenForms(value: unknown): string[] {
  const python = (one: unknown): string => {
    if (Array.isArray(one)) return `[${one.map(python).join(', ')}]`;
    if (typeof one !== 'object' || one === null) return JSON.stringify(one);
    return `{${Object.entries(one)
      .map(([key, item]) => `${JSON.stringify(key)}: ${python(item)}`)
      .join(', ')}}`;
  };
  return [JSON.stringify(value), JSON.stringify(value, null, 2), python(value)];
}

/**
 * What is wrong with the guide of a schema: texts that it writes and ajv refuses, and valid values that it refuses. Its own
 * texts, read and written again, count as valid values too.
 */
export function faultsOf(written: WrittenSchema, numWalks: number): string[] {
  const isValid = validatorOf(written);
  const matcher = matcherOf('json_schema', written.schema);
  const faults: string[] = [];
  const random = new Random(1);
  const known = [...written.values];
  for (let i = 0; i < numWalks; i++) {
    const text = randomText(matcher, random, MAX_WALK)?.toString();
    if (text === undefined) {
      faults.push('a text that comes to no end');
      continue;
    }
    const value: unknown = JSON.parse(text);
    if (!isValid(value)) faults.push(`not valid: ${text}`);
    else if (!hasLargeNumber(value)) known.push(value);
  }
  for (const value of known) {
    if (!isValid(value)) faults.push(`no value of the schema: ${JSON.stringify(value)}`);
    for (const text of writtenForms(value)) if (!matches(matcher, text)) faults.push(`refused: ${text}`);
  }
  return faults;
}
