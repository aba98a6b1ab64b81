/** Checks of what has come in a message, whose fields may be of any type. */

/** Most tokens of a sequence: whatever an engine has is far below. */
const MAX_TOKENS = 2 ** 30;
/** Longest name of something in a message. */
const MAX_NAME_LENGTH = 1_000;

export const isText = (value: unknown) => typeof value === 'string';
export const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
export const isLength = (value: unknown) => isCount(value) && (value as number) <= MAX_TOKENS;
/** An id or a fingerprint, which is a word of a subject: with others it would be another subject. */
export const isWord = (value: unknown) => typeof value === 'string' && /^[\w-]{1,64}$/.test(value);
export const isName = (value: unknown) => isText(value) && (value as string).length <= MAX_NAME_LENGTH;
export const isList = (value: unknown, is: (one: unknown) => boolean, most = Number.POSITIVE_INFINITY) =>
  Array.isArray(value) && value.length <= most && value.every(is);
export const isLease = (value: unknown) => Array.isArray(value) && isText(value[0]) && isCount(value[1]);
/** A field that may be absent. */
export const isSwitch = (value: unknown) => value === undefined || typeof value === 'boolean';
