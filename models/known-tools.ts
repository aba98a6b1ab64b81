import { RecentValues } from '../base/recent-values.js';
import { parseWritten } from '../base/written-json.js';
import type { WrittenTexts } from './jinja/rendering.js';
import { Dict } from './jinja/values/dict.js';
import { fromJson } from './jinja/values/from-json.js';
import type { Value } from './jinja/values/value.js';
import { textUnits, UNITS_PER_VALUE } from './json-units.js';
import type { StringsSeen } from './tokenizer/special-text-guard.js';

/** Functions that were rendered before, with all that the next rendering needs of them. */
export interface KnownTools {
  /** The functions as values of a template. */
  value: Value;
  /** What the guard of special texts found in their strings. */
  seen: StringsSeen;
  /** UTF-16 units of all texts, and 1 for each value. */
  textUnits: number;
  /** Texts of these values as JSON, as the filter tojson made them. */
  written: WrittenValues;
}

/** Most lists of functions that are remembered, and the most units of all together: some 30 MB. */
const MAX_LISTS = 64;
const MAX_UNITS = 2 ** 21;
/** Depth down to which templates write values as JSON: the list, a tool, its function, the schema of its arguments. */
const DEPTH_WRITTEN = 4;
/** Most units of the texts of one list, for each unit of its own JSON. */
const MAX_WRITTEN = 4;

/** Lists of functions, by their JSON: clients send the same ones with each request. */
export class KnownToolLists {
  readonly #see: (tools: unknown) => StringsSeen;
  readonly #lists = new RecentValues<KnownTools>({ maxCount: MAX_LISTS, maxUnits: MAX_UNITS });

  /** @param see the guard's look at all strings */
  constructor(see: (tools: unknown) => StringsSeen) {
    this.#see = see;
  }

  /** @param json a list of functions */
  of(json: string): KnownTools {
    const known = this.#lists.get(json);
    if (known !== undefined) return known;
    const tools = parseWritten(json);
    const value = fromJson(tools);
    const written = new WrittenValues(value, MAX_WRITTEN * json.length);
    const read = { value, seen: this.#see(tools), textUnits: textUnits(tools), written };
    this.#lists.set(json, read, json.length + UNITS_PER_VALUE * countOf(tools));
    return read;
  }

  /** Number of lists, and units of all together. */
  get size(): { lists: number; units: number } {
    return { lists: this.#lists.count, units: this.#lists.units };
  }
}

/** Number of values in a JSON value, itself included. */
function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, one) => sum + countOf(one), 1);
}

/** What a filter made of values that never change. */
class WrittenValues implements WrittenTexts {
  readonly #maxUnits: number;
  readonly #texts = new Map<object, Map<string, string>>();
  #units = 0;

  /** @param value its own texts and those of values within it are kept. @param maxUnits most UTF-16 units of all texts */
  constructor(value: Value, maxUnits: number) {
    this.#maxUnits = maxUnits;
    this.#take(value, DEPTH_WRITTEN);
  }

  /** True for values whose texts are kept. */
  has(value: object): boolean {
    return this.#texts.has(value);
  }

  /** The text of a value by a filter with these arguments; undefined where it is not known. */
  get(value: object, args: string): string | undefined {
    return this.#texts.get(value)?.get(args);
  }

  /** Keeps a text, where there is room. */
  set(value: object, args: string, text: string): void {
    const texts = this.#texts.get(value);
    if (texts === undefined || this.#units + text.length > this.#maxUnits) return;
    this.#units += text.length;
    texts.set(args, text);
  }

  #take(value: Value, depth: number): void {
    const inner = Array.isArray(value) ? value : value instanceof Dict ? value.values() : null;
    if (depth === 0 || inner === null) return;
    this.#texts.set(value as object, new Map());
    for (const one of inner) this.#take(one, depth - 1);
  }
}
