import { InvalidRequestError } from '../errors/request-errors.js';
import { firstThatIsNoToken } from './fields.js';

/** Most items of a list, or fields of an object, that are checked one by one. */
const MAX_ITEMS = 4096;
/** Most messages of a conversation. */
const MAX_MESSAGES = 8192;

/** Fields that may hold as many token ids as a prompt. */
const TOKEN_LISTS: ReadonlySet<string> = new Set(['prompt', 'input', 'inputs', 'tokens', 'context']);

/** A fault and its place; the path begins at the field. */
interface Finding {
  path: (string | number)[];
  message: string;
}

/**
 * Refuses lists with more items than a request can need, before the validator checks each.
 * @throws InvalidRequestError that names the field.
 */
export function checkLists(body: object): void {
  for (const [name, value] of Object.entries(body)) {
    const most = name === 'messages' ? MAX_MESSAGES : MAX_ITEMS;
    // The schema of logit_bias limits it.
    const found = name === 'logit_bias' ? null : check(value, most, TOKEN_LISTS.has(name));
    if (found === null) continue;
    const param = found.path.reduce<string>(
      (path, key) => (typeof key === 'number' ? `${path}[${key}]` : `${path}.${key}`),
      name,
    );
    const message = `Invalid value for '${param}': ${found.message}.`;
    throw new InvalidRequestError(message, param, 'invalid_value');
  }
}

function check(value: unknown, most: number, holdsTokens: boolean): Finding | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) return checkList(value, most, holdsTokens);
  const entries = Object.entries(value);
  if (entries.length > most) return tooLong(entries.length, most);
  for (const [key, item] of entries) {
    // Only a fault gets a path, since most values are valid, and there are many.
    const found = check(item, MAX_ITEMS, false);
    if (found !== null) return within(key, found);
  }
  return null;
}

function checkList(list: readonly unknown[], most: number, holdsTokens: boolean): Finding | null {
  if (holdsTokens && typeof list[0] === 'number') {
    // The schema says of a short list whether numbers are wanted at all.
    const wrong = list.length > most ? firstThatIsNoToken(list) : -1;
    return wrong < 0 ? null : { path: [wrong], message: 'expected the id of a token' };
  }
  if (list.length > most) return tooLong(list.length, most);
  for (let i = 0; i < list.length; i++) {
    const found = check(list[i], MAX_ITEMS, holdsTokens);
    if (found !== null) return within(i, found);
  }
  return null;
}

function tooLong(length: number, most: number): Finding {
  return { path: [], message: `it holds ${length} items, and no list or object may have more than ${most}` };
}

function within(key: string | number, { path, message }: Finding): Finding {
  return { path: [key, ...path], message };
}
