/**
 * JSON as it was written. JavaScript's values lose what a chat template shows, since Python keeps it:
 *
 *   1.0, 1e2               whole numbers that were written as floats
 *   12345678901234567890   digits beyond 2^53
 *   {"b": 1, "7": 2}       the order of names that look like numbers
 *
 * `parseWritten` gives ordinary values, and remembers for the lists and objects among them what was lost. Only few texts lose
 * anything: these are read with marks in the places of their numbers, so that the engine's own parser does the work.
 */

/** What a list or an object loses. */
export interface WrittenForm {
  /** Numbers by name or index, as they were written. */
  readonly numbers: ReadonlyMap<string, string>;
  /** Names in the order in which they came; null: as JavaScript has them. */
  readonly order: readonly string[] | null;
}

const forms = new WeakMap<object, WrittenForm>();
/** Values of whole texts that lost something. */
const roots = new WeakSet<object>();

/** The form of a list or an object that `parseWritten` read; undefined: nothing was lost. */
export const writtenForm = (value: object): WrittenForm | undefined => forms.get(value);

/**
 * Characters of which one marks numbers: none of any script, so that texts hardly have them. They are few, since each is searched for in
 * the whole text: a text that has them all loses the form of its numbers.
 */
const FIRST_MARK = 0xe000;
const LAST_MARK = 0xe007;
/** Numbers of JSON, in text between two strings; what is none there stays, and fails as it is. */
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** A number, or a name, that may lose something; strings may hold such text too. */
const AT_RISK = /\d\.0*(?!\d)|\d[eE][+-]?\d|\d{16}|\d"\s*:/;

/** Parses JSON. @throws SyntaxError as JSON.parse does */
export function parseWritten(text: string): unknown {
  return AT_RISK.test(text) ? parseMarked(text) : JSON.parse(text);
}

function parseMarked(text: string): unknown {
  const mark = unusedMark(text);
  const marked = mark === null ? null : withMarks(text, mark);
  if (marked === null) return JSON.parse(text);
  let parsed: unknown;
  try {
    parsed = JSON.parse(marked);
  } catch {
    // The error names places of the text, which have to be those of the client's.
    return JSON.parse(text);
  }
  const value = new Unmarking(mark!).restored(parsed);
  if (typeof value === 'object' && value !== null) roots.add(value);
  return value;
}

/** A character that the text has neither as it is nor as an escape. */
function unusedMark(text: string): string | null {
  for (let code = FIRST_MARK; code <= LAST_MARK; code++) {
    const mark = String.fromCharCode(code);
    if (!text.includes(mark) && !new RegExp(`\\\\u${code.toString(16)}`, 'i').test(text)) return mark;
  }
  return null;
}

/** The text with strings in place of numbers that lose something, and marks before such names; null where it has none. */
function withMarks(text: string, mark: string): string | null {
  const parts: string[] = [];
  let hasMarks = false;
  let at = 0;
  while (at < text.length) {
    const quote = text.indexOf('"', at);
    const gap = text.slice(at, quote < 0 ? text.length : quote);
    const changed = gap.replace(NUMBER, (number) => (losesText(number) ? `"${mark}${number}"` : number));
    hasMarks ||= changed !== gap;
    parts.push(changed);
    if (quote < 0) break;
    const end = endOfString(text, quote);
    const isNumericName =
      /^\d+$/.test(text.slice(quote + 1, end - 1)) && /^\s*:/.test(text.slice(end, end + 16));
    hasMarks ||= isNumericName;
    parts.push(isNumericName ? `"${mark}${text.slice(quote + 1, end)}` : text.slice(quote, end));
    at = end;
  }
  return hasMarks ? parts.join('') : null;
}

/** True where JavaScript would read another number than Python, or write it otherwise. */
function losesText(number: string): boolean {
  const value = Number(number);
  return /[.eE]/.test(number) ? Number.isInteger(value) : !Number.isSafeInteger(value);
}

/** Where the string that begins at a quote ends. */
function endOfString(text: string, quote: number): number {
  let end = text.indexOf('"', quote + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text[quote - backslashes - 1] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

/** Puts numbers and names back in the places of their marks. */
class Unmarking {
  readonly #mark: string;

  constructor(mark: string) {
    this.#mark = mark;
  }

  restored(value: unknown): unknown {
    if (typeof value === 'string') return value.startsWith(this.#mark) ? Number(value.slice(1)) : value;
    if (typeof value !== 'object' || value === null) return value;
    return Array.isArray(value) ? this.#list(value) : this.#object(value as Record<string, unknown>);
  }

  #list(list: unknown[]): unknown[] {
    const numbers = new Map<string, string>();
    for (const [i, item] of list.entries()) {
      this.#note(numbers, String(i), item);
      list[i] = this.restored(item);
    }
    if (numbers.size > 0) forms.set(list, { numbers, order: null });
    return list;
  }

  #object(object: Record<string, unknown>): Record<string, unknown> {
    const numbers = new Map<string, string>();
    const names = Object.keys(object);
    const hasMarked = names.some((name) => name.startsWith(this.#mark));
    const result: Record<string, unknown> = hasMarked ? {} : object;
    const order = names.map((marked) => (marked.startsWith(this.#mark) ? marked.slice(1) : marked));
    for (const [i, name] of order.entries()) {
      const item = object[names[i]!];
      this.#note(numbers, name, item);
      setOwn(result, name, this.restored(item));
    }
    if (numbers.size > 0 || hasMarked) forms.set(result, { numbers, order: hasMarked ? order : null });
    return result;
  }

  #note(numbers: Map<string, string>, name: string, item: unknown): void {
    if (typeof item === 'string' && item.startsWith(this.#mark)) numbers.set(name, item.slice(1));
  }
}

/** Sets a field as JSON.parse does, also one called __proto__. */
function setOwn(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

/** JSON of a value, with its numbers and names as they were written. */
export function writtenJson(value: unknown): string {
  return hasForm(value) ? write(value) : JSON.stringify(value);
}

function write(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const form = forms.get(value);
  const entry = (name: string, item: unknown) => form?.numbers.get(name) ?? write(item);
  if (Array.isArray(value)) return `[${value.map((item, i) => entry(String(i), item ?? null)).join(',')}]`;
  const fields = entriesAsWritten(value as Record<string, unknown>).filter(([, item]) => item !== undefined);
  return `{${fields.map(([name, item]) => `${JSON.stringify(name)}:${entry(name, item)}`).join(',')}}`;
}

/** True where a value, or one within it, has a form. */
function hasForm(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return forms.has(value) || Object.values(value).some(hasForm);
}

/** Fields of an object in the order in which they came. */
export function entriesAsWritten<T>(object: Readonly<Record<string, T>>): [string, T][] {
  const order = forms.get(object)?.order ?? null;
  const entries = Object.entries(object);
  if (order === null || order.length !== entries.length) return entries;
  return order.every((name) => Object.hasOwn(object, name))
    ? order.map((name) => [name, object[name]!])
    : entries;
}

/** Gives a copy of a list or an object its form: fields of other names are not found in it. */
export function carryForm(from: object, to: object): void {
  const form = forms.get(from);
  if (form !== undefined) forms.set(to, form);
}

/** Gives a checked copy of a whole text's value the forms of its lists and objects, as far as both have the same fields. */
export function carryForms(from: unknown, to: unknown): void {
  if (typeof from === 'object' && from !== null && roots.has(from)) carryWithin(from, to);
}

function carryWithin(from: unknown, to: unknown): void {
  if (typeof from !== 'object' || from === null || typeof to !== 'object' || to === null || from === to)
    return;
  carryForm(from, to);
  for (const [name, item] of Object.entries(from)) {
    if (Object.hasOwn(to, name)) carryWithin(item, (to as Record<string, unknown>)[name]);
  }
}
