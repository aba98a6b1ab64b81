import { ApiError } from '../errors.js';

/** Items of a list, or fields of an object, that are looked at one by one. */
const MAX_ITEMS = 4096;
/** Messages of a conversation. */
const MAX_MESSAGES = 16_384;

/** Fields that may hold as many token ids as a prompt has. */
const TOKEN_LISTS: ReadonlySet<string> = new Set(['prompt', 'input', 'tokens']);

/**
 * Refuses lists of more items than a request can mean, before the validator looks at each: it gathers a complaint for
 * every item that is wrong, and some hundred thousand of them would stall the server.
 * @throws ApiError 400 that names the field.
 */
export function checkLists(body: object): void {
  for (const [name, value] of Object.entries(body)) check(value, name, TOKEN_LISTS.has(name));
}

function check(value: unknown, name: string, holdsTokens: boolean): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    if (holdsTokens && typeof value[0] === 'number') checkTokens(value, name);
    else {
      refuseLong(value.length, name === 'messages' ? MAX_MESSAGES : MAX_ITEMS, name);
      for (const [index, item] of value.entries()) check(item, `${name}[${index}]`, holdsTokens);
    }
    return;
  }
  const entries = Object.entries(value);
  // A bias for each token of a vocabulary is an object of as many fields.
  if (name !== 'logit_bias') refuseLong(entries.length, MAX_ITEMS, name);
  for (const [key, item] of entries) check(item, `${name}.${key}`, false);
}

function checkTokens(tokens: readonly unknown[], name: string): void {
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index];
    if (Number.isInteger(token) && (token as number) >= 0) continue;
    const message = `Invalid value for '${name}[${index}]': expected the id of a token.`;
    throw new ApiError(400, message, { param: `${name}[${index}]`, code: 'invalid_value' });
  }
}

function refuseLong(length: number, most: number, name: string): void {
  if (length <= most) return;
  const message = `Invalid value for '${name}': it holds ${length} items, at most ${most} are taken.`;
  throw new ApiError(400, message, { param: name, code: 'invalid_value' });
}
