import { hintOf } from '../../base/did-you-mean.js';
import { UsageError } from '../errors/user-errors.js';
import { nameOf } from '../hub/repository.js';
import { optionCalled, refusalOf } from '../options/old-names.js';
import { OPTIONS, type OptionName } from '../options/table.js';

/** Options that an entry of `models` in a --config file may have; all others are the server's. */
const OPTIONS_OF_A_MODEL = OPTIONS.filter(({ isOfAModel }) => isOfAModel).map(({ name }) => name);

/** All fields of an entry. */
const FIELDS = ['name', 'model', 'aliases', ...OPTIONS_OF_A_MODEL];

/** A model to serve, as the user gave it. */
export interface ModelEntry {
  /** Name that clients ask for. */
  name: string;
  /** Further names that clients may ask for. */
  aliases: readonly string[];
  /** Path of the model. */
  model: string;
}

/** An entry of `models` in a --config file, whose own options are not checked yet. */
export interface FileEntry extends ModelEntry {
  options: Partial<Record<OptionName, unknown>>;
}

/**
 * Parses PATH, or NAME=PATH. A name does not begin with a dot, a slash or a tilde: such a text is a path with an equals
 * sign in it.
 * @param where how the user wrote the option, for errors.
 */
export function modelEntry(text: string, where: string): ModelEntry {
  const sign = text.indexOf('=');
  if (sign < 0 || /^([./~\\]|[A-Za-z]:[\\/])/.test(text))
    return { name: nameOf(text), aliases: [], model: text };
  const [name, model] = [text.slice(0, sign).trim(), text.slice(sign + 1).trim()];
  if (name === '')
    throw new UsageError(
      `${where} is ${JSON.stringify(text)}, which has an empty name; NAME=PATH is expected.`,
    );
  if (model === '')
    throw new UsageError(`${where} is ${JSON.stringify(text)}, which has no path; NAME=PATH is expected.`);
  return { name, aliases: [], model };
}

/** Parses the list `models` of a --config file. @throws UsageError. */
export function fileEntries(list: unknown, where: string): FileEntry[] {
  if (!Array.isArray(list) || list.length === 0) {
    throw new UsageError(
      `${where} must be a list of models, such as [{"name": "chat", "model": "./smollm2"}].`,
    );
  }
  return list.map((entry: unknown, index) => fileEntry(entry, entryName(where, index)));
}

/** What errors call an entry of a list, which people count from 1. */
export function entryName(list: string, index: number): string {
  return `entry ${index + 1} of ${list}`;
}

/** Parses one of these entries. @throws UsageError */
export function fileEntry(entry: unknown, where: string): FileEntry {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    throw new UsageError(`${where} must be an object such as {"name": "chat", "model": "./smollm2"}.`);
  }
  const { name, model, aliases = [], ...rest } = entry as Record<string, unknown>;
  // A field that is unknown may be the one that is missing.
  if (model === undefined) refuseUnknown(rest, where);
  if (typeof model !== 'string' || model === '')
    throw new UsageError(`model of ${where} must be the path of a model.`);
  if (name !== undefined && !isName(name)) throw new UsageError(`name of ${where} must be ${NAME}.`);
  if (!Array.isArray(aliases) || !aliases.every(isName))
    throw new UsageError(`aliases of ${where} must be a list of names.`);
  refuseUnknown(rest, where);
  const options: FileEntry['options'] = {};
  for (const [key, value] of Object.entries(rest)) {
    const option = optionCalled(key)!;
    if (Object.hasOwn(options, option)) throw new UsageError(`${where} has ${option} twice, by two names.`);
    options[option] = value;
  }
  return { name: name === undefined ? nameOf(model) : (name as string), aliases, model, options };
}

function refuseUnknown(fields: Record<string, unknown>, where: string): void {
  for (const key of Object.keys(fields)) {
    const option = optionCalled(key);
    if (option === null || !OPTIONS_OF_A_MODEL.includes(option)) throw new UsageError(unknown(key, where));
  }
}

function unknown(key: string, where: string): string {
  const now = refusalOf(key, (option) => option);
  if (now !== null) return `${where}: ${now}`;
  if (optionCalled(key) !== null)
    return `${where} has ${key}, which is an option of the server, and of no single model.`;
  return `${where} has an unknown field ${key}; ${hintOf(key, FIELDS, 'skein serve --help')}`;
}

const NAME = 'a text that is not empty';

function isName(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

/** @throws UsageError where two models have one name. */
export function checkNames(entries: readonly ModelEntry[]): void {
  const taken = new Map<string, ModelEntry>();
  for (const entry of entries) {
    for (const name of [entry.name, ...entry.aliases]) {
      const other = taken.get(name);
      if (other !== undefined) {
        throw new UsageError(
          `The name ${name} is given twice: to ${other.model} and to ${entry.model}; give each a name of its own, as in --model NAME=PATH.`,
        );
      }
      taken.set(name, entry);
    }
  }
}
