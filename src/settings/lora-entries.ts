import { closestName } from '../../base/did-you-mean.js';
import { messageOf } from '../../base/error-text.js';
import { isObject, shown } from '../../base/option-values.js';
import { asSentence } from '../../base/sentences.js';
import { UsageError } from '../errors/user-errors.js';
import { ADAPTER_NAME, isAdapterName } from '../serving/adapters/adapter-name.js';
import { checkNames, type ModelEntry, modelEntry } from './model-entries.js';

/** A LoRA adapter to serve, as the user gave it. */
export interface AdapterEntry {
  /** Name that clients ask for. */
  name: string;
  path: string;
  /** Name of the model whose adapter it is; null: not given. */
  base: string | null;
}

/**
 * Adapters of a file as texts: a text, an object of names and paths, or a list of texts and of objects as JSON has them. Anything else is
 * left as it is, for the check that refuses it.
 */
export function adapterTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => (isObject(one) ? JSON.stringify(one) : one));
  if (!isObject(value)) return typeof value === 'string' ? [value] : value;
  return Object.entries(value).map(([name, path]) => JSON.stringify({ name, path }));
}

const EXAMPLE = '{"name": "sql", "path": "./sql-lora", "base_model_name": "chat"}';

/**
 * Parses PATH, NAME=PATH, or vLLM's JSON form. @param where how the user wrote the option, for errors. @throws UsageError
 */
export function adapterEntry(text: string, where: string): AdapterEntry {
  const entry = text.trimStart().startsWith('{') ? ofJson(text, where) : ofText(text, where);
  if (isAdapterName(entry.name)) return entry;
  throw new UsageError(
    `${where}: ${shown(entry.name)} can be no name of an adapter; ${ADAPTER_NAME} is expected.`,
  );
}

function ofText(text: string, where: string): AdapterEntry {
  const { name, model: path } = modelEntry(text, where);
  return { name, path, base: null };
}

/** Keys of the JSON form. */
const KEYS = ['name', 'path', 'base_model_name', 'is_3d_lora_weight'];

function ofJson(text: string, where: string): AdapterEntry {
  const value = parsed(text, where);
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) {
    const meant = closestName(unknown, KEYS);
    const hint = meant === null ? `keys are ${KEYS.join(', ')}.` : `did you mean ${meant}?`;
    throw new UsageError(`${where} has an unknown key ${shown(unknown)} in its JSON; ${hint}`);
  }
  const { name, path, base_model_name: base, is_3d_lora_weight: is3d } = value;
  const isText = (one: unknown): one is string => typeof one === 'string' && one.trim() !== '';
  if (is3d !== undefined && is3d !== null && is3d !== false) {
    throw new UsageError(
      `${where}: is_3d_lora_weight is ${shown(is3d)}; adapters of experts whose weights have three dimensions are not supported.`,
    );
  }
  if (!isText(name) || !isText(path)) {
    const [key, found] = isText(name) ? ['path', path] : ['name', name];
    const problem = found === undefined ? `has no "${key}"` : `has ${shown(found)} as "${key}"`;
    throw new UsageError(`${where} ${problem} in its JSON; an object is expected such as ${EXAMPLE}.`);
  }
  if (base !== undefined && base !== null && typeof base !== 'string') {
    throw new UsageError(`${where} has ${shown(base)} as "base_model_name" in its JSON; a name is expected.`);
  }
  // Controllers send '' where they have none.
  return { name, path, base: isText(base) ? base : null };
}

function parsed(text: string, where: string): Record<string, unknown> {
  try {
    // What begins with a brace is an object, or no JSON.
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new UsageError(
      `${where} begins as JSON does and is none: ${asSentence(messageOf(error))} NAME=PATH is expected, or an object such as ${EXAMPLE}.`,
    );
  }
}

/** Adapters of one model: paths by name. @throws UsageError where two have one name */
export function adapterPaths(entries: readonly AdapterEntry[], where: string): Record<string, string> {
  const paths = new Map<string, string>();
  for (const { name, path } of entries) {
    const other = paths.get(name);
    if (other !== undefined) {
      throw new UsageError(
        `${where} names two adapters ${name}: ${other} and ${path}; give each a name of its own.`,
      );
    }
    paths.set(name, path);
  }
  return Object.fromEntries(paths);
}

/** Deals the adapters of the command line to its models. @throws UsageError where it is not clear whose an adapter is */
function dealt(
  entries: readonly AdapterEntry[],
  models: readonly ModelEntry[],
  where: string,
): Map<ModelEntry, AdapterEntry[]> {
  const byModel = new Map<ModelEntry, AdapterEntry[]>();
  for (const entry of entries) {
    const model = baseOf(entry, models, where);
    byModel.set(model, [...(byModel.get(model) ?? []), entry]);
  }
  return byModel;
}

function baseOf(
  { name, path, base }: AdapterEntry,
  models: readonly ModelEntry[],
  where: string,
): ModelEntry {
  const [first] = models;
  if (first === undefined) {
    throw new UsageError(`${where} is an adapter of a model of --model, and there is none.`);
  }
  const named = models.find((model) => [model.name, ...model.aliases].includes(base ?? ''));
  if (named !== undefined) return named;
  // vLLM, which serves one model, takes any name here: that of the hub, for example.
  if (models.length === 1) return first;
  const names = models.map((model) => model.name).join(', ');
  if (base !== null) {
    throw new UsageError(
      `${where}: the adapter ${name} is said to be one of ${base}; the models are ${names}.`,
    );
  }
  const example = JSON.stringify({ name, path, base_model_name: first.name });
  throw new UsageError(
    `${where}: it is not clear whose the adapter ${name} is, of ${names}; write ${example}.`,
  );
}

/** A model with the paths of its adapters by their names. */
interface WithAdapters extends ModelEntry {
  adapters: Readonly<Record<string, string>>;
}

/** The models, each with those adapters of --lora that are its own. @throws UsageError where a name is given twice */
export function withAdapters<Model extends WithAdapters>(
  models: readonly Model[],
  texts: readonly string[] = [],
  where = '--lora',
): Model[] {
  const entries = texts.map((text) => adapterEntry(text, where));
  const byModel = dealt(entries, models, where);
  const all = models.map((model) => {
    const own = Object.entries(model.adapters).map(([name, path]) => ({ name, path, base: null }));
    return { ...model, adapters: adapterPaths([...own, ...(byModel.get(model) ?? [])], where) };
  });
  checkNames([...all, ...all.flatMap(({ adapters }) => Object.entries(adapters).map(entryOf))]);
  return all;
}

/** An adapter, as an entry whose name is its own. */
const entryOf = ([name, model]: [string, string]): ModelEntry => ({ name, aliases: [], model });

/** A model's choice whether it takes adapters. */
interface Choosing {
  options: { enableLora?: boolean | undefined };
}

/** @throws UsageError for options of adapters that do nothing without each other, or contradict each other */
export function checkAdapters(
  {
    allowRuntimeLora,
    loraDir,
    enableLora,
  }: { allowRuntimeLora: boolean; loraDir?: string | undefined; enableLora?: boolean | undefined },
  models: readonly Choosing[],
): void {
  if (allowRuntimeLora && loraDir === undefined) {
    throw new UsageError(
      '--allow-runtime-lora needs --lora-dir, the folder of the adapters that clients may load.',
    );
  }
  if (loraDir !== undefined && !allowRuntimeLora) {
    throw new UsageError(
      '--lora-dir does nothing without --allow-runtime-lora: --lora takes paths anywhere.',
    );
  }
  const refuses = ({ options }: Choosing) => (options.enableLora ?? enableLora) === false;
  if (allowRuntimeLora && models.length > 0 && models.every(refuses)) {
    throw new UsageError(
      '--allow-runtime-lora does nothing where no model takes adapters (enable-lora is false).',
    );
  }
}
