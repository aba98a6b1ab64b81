import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { MAX_INT32 } from '../../base/int32.js';

/** Description of a field, for the API's own documentation. */
export interface About {
  description: string;
  /** Value where the field is not given. */
  default?: unknown;
  examples?: readonly unknown[];
  deprecated?: boolean;
  /** Type to show, where it is narrower than the validator's. */
  type?: string | readonly string[];
}

/** Attaches a description to a schema; to a copy of it, if it has one already. */
export function about<T extends z.ZodType>(schema: T, text: string | About): T {
  const meta = typeof text === 'string' ? { description: text } : text;
  // A schema that several fields share keeps the description that it has.
  const own = z.globalRegistry.has(schema) ? schema.clone() : schema;
  z.globalRegistry.add(own, meta as z.GlobalMeta);
  return own;
}

/**
 * Gives a schema a name in the API's description, by which others refer to it. The key is the one that the generator of
 * the description reads; its own function for that would load the generator at the start.
 */
export function component<T extends z.ZodType>(name: string, schema: T, text: string | About): T {
  const meta = typeof text === 'string' ? { description: text } : text;
  z.globalRegistry.add(schema, { ...meta, _internal: { refId: name } } as z.GlobalMeta);
  return schema;
}

/** An optional field, which may also be null: OpenAI's clients send null for "not given". */
export function optional<T extends z.ZodType>(schema: T, text?: string | About) {
  const field = schema.nullish().transform((value) => value ?? undefined);
  return text === undefined ? field : about(field, text);
}

/**
 * A field of the API that does not work here. Values that ask for nothing are accepted, so that clients which always
 * send the field are served; other values are refused by name instead of being ignored.
 */
export function notSupported(reason: string, ...harmless: readonly unknown[]) {
  const accepted = [undefined, null, ...harmless];
  const field = z
    .unknown()
    .optional()
    .superRefine((value, context) => {
      if (accepted.some((one) => isDeepStrictEqual(value, one))) return;
      context.addIssue({ code: 'custom', message: reason, params: { refused: true }, continue: false });
    });
  const values = accepted.slice(1).map((value) => JSON.stringify(value));
  return about(field, `Not supported: this server does not have ${reason}. Accepted: ${values.join(', ')}.`);
}

/** A field without effect on the answer. */
export function ignored(text = 'Accepted; it has no bearing on the answer.') {
  return about(z.unknown().optional(), text);
}

export function number(range: { min: number; max: number; integer: boolean }, text: string | About) {
  const schema = range.integer ? z.int() : z.number();
  return optional(schema.min(range.min).max(range.max), text);
}

export function count(least: number, text: string | About) {
  return optional(z.int().min(least).max(MAX_INT32), text);
}

export const tokenId = z.int().min(0).max(MAX_INT32);

/** Index of the first value that is no token id of any vocabulary; -1: all are token ids. */
export function firstThatIsNoToken(values: readonly unknown[]): number {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > MAX_INT32) return i;
  }
  return -1;
}

/**
 * A list of token ids as long as prompts are, validated in one go: a validator's call for each of some hundred thousand
 * ids takes a hundred times as long. @param isOneOfSeveral true where the field may hold something else instead
 */
export function tokenList(least: number, isOneOfSeveral = true) {
  const schema = z.unknown().transform((value, context): number[] => {
    const refuse = (message: string, path: number[] = []): never => {
      context.addIssue({ code: 'custom', message, path });
      return z.NEVER;
    };
    if (!Array.isArray(value))
      return refuse(`expected ${isOneOfSeveral ? 'a string or ' : ''}a list of token ids`);
    if (value.length < least) return refuse('expected a list that is not empty');
    const wrong = firstThatIsNoToken(value);
    // Where the list may also hold texts or lists, and does, no index of it is wrong.
    if (isOneOfSeveral && wrong === 0 && typeof value[0] !== 'number')
      return refuse('expected a list of token ids');
    return wrong < 0 ? value : refuse('expected the id of a token', [wrong]);
  });
  const items = { type: 'integer', minimum: 0, maximum: MAX_INT32 };
  const shown = { type: 'array', items, ...(least > 0 ? { minItems: least } : {}) };
  z.globalRegistry.add(schema, shown as z.GlobalMeta);
  return schema;
}

/** A text of at most a line. */
export function shortText(most: number) {
  return z.string().max(most);
}

/**
 * A text, several texts, a list of token ids, or several such lists, converted to a list of 1 to `most`. @param what
 * name of the entries in a refusal of more
 * @param lists of texts
 */
export function textsOrTokens<T = string>(
  most: number,
  what: string,
  lists: z.ZodType<(T | string)[]> = z.array(z.string()).min(1),
) {
  return z
    .union(
      [
        z.string().transform((one) => [one]),
        tokenList(1).transform((one) => [one]),
        z.array(tokenList(1)).min(1),
        lists,
      ],
      { error: 'expected a string, token ids, or a list of either, none of them empty' },
    )
    .refine((given) => given.length <= most, {
      error: ({ input }) => `it holds ${(input as unknown[]).length} ${what}, at most ${most} are taken`,
    });
}
