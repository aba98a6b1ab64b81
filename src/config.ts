import { readFileSync } from 'node:fs';
import type * as z from 'zod';
import { closestName } from '../base/did-you-mean.js';
import { flagName, OPTIONS, type OptionName, type OptionSpec, variableName } from './config-options.js';
import { DEMO_MODEL_NAME, demoModelPath } from './demo-model.js';
import { fileProblem } from './file-problem.js';
import {
  checkNames,
  type FileEntry,
  fileEntries,
  type ModelEntry,
  modelEntry,
  type OptionOfAModel,
} from './model-entries.js';
import { parseYaml } from './parse-yaml.js';
import { UsageError } from './usage-error.js';

export { UsageError };

type Options = { [Name in OptionName]: z.output<(typeof OPTIONS)[Name]['schema']> };

/** A model to serve, with the options that are its own. */
export interface ConfiguredModel extends ModelEntry {
  options: Partial<Pick<Options, OptionOfAModel>>;
}

/** Every option with its value, and the models. */
export interface Config extends Omit<Options, 'model' | 'servedModelName'> {
  /** At least one; no two of a name. The first is that of requests that name none. */
  models: readonly ConfiguredModel[];
}

export interface ConfigSources {
  /** Values from the command line, as text; true and false for switches. */
  flags?: Readonly<Record<string, unknown>>;
  environment?: Readonly<Record<string, string | undefined>>;
  /** Path of a JSON or YAML file. */
  file?: string | undefined;
}

interface Given {
  value: unknown;
  /** How the user wrote the option, for errors. */
  where: string;
}

const NAMES = Object.keys(OPTIONS) as OptionName[];

/**
 * The configuration, each option from the first source that has it: flag, environment, file, default.
 * @throws UsageError naming the source and what would be right.
 */
export function loadConfig(sources: ConfigSources): Config {
  const path = sources.file ?? sources.environment?.SKEIN_CONFIG;
  const { models, ...file } = path === undefined ? {} : readConfigFile(path);
  const config: Record<string, unknown> = {};
  const where: Partial<Record<OptionName, string>> = {};
  for (const name of NAMES) {
    const spec: OptionSpec = OPTIONS[name];
    const given = fromFlag(name, sources.flags) ?? fromEnvironment(name, sources.environment) ?? file[name];
    const parsed = spec.schema.safeParse(given?.value);
    if (!parsed.success) throw new UsageError(valueError(name, spec, given, parsed.error));
    config[name] = parsed.data;
    if (given !== undefined) where[name] = given.where;
  }
  const { model, servedModelName, ...options } = config as Options;
  return { ...options, models: modelsOf(model, servedModelName, models, where) };
}

/** The models of flags and environment go before those of a file, all of them. */
function modelsOf(
  texts: Options['model'],
  names: Options['servedModelName'],
  list: Given | undefined,
  where: Partial<Record<OptionName, string>>,
): ConfiguredModel[] {
  const models =
    texts === undefined && list === undefined
      ? [demoModel()]
      : texts === undefined
        ? fileEntries(list!.value, list!.where).map((entry, index) =>
            configured(entry, `${list!.where}[${index}]`),
          )
        : texts.map((text) => ({ ...modelEntry(text, where.model!), options: {} }));
  if (names !== undefined) {
    if (models.length > 1 || texts?.[0]?.startsWith(`${models[0]!.name}=`)) {
      throw new UsageError(
        `${where.servedModelName} names the one model that has no name yet; write --model NAME=PATH in its place.`,
      );
    }
    const [name, ...aliases] = names as [string, ...string[]];
    models[0] = { ...models[0]!, name, aliases };
  }
  checkNames(models);
  return models;
}

/** The model that comes with the package. @throws UsageError where the package was made without it. */
function demoModel(): ConfiguredModel {
  const model = demoModelPath();
  if (model !== null) return { name: DEMO_MODEL_NAME, aliases: [], model, options: {} };
  throw new UsageError(
    `--model is required: ${OPTIONS.model.help} (SKEIN_MODEL, and "model" or "models" in a --config file do as well).`,
  );
}

function configured({ options, ...entry }: FileEntry, where: string): ConfiguredModel {
  const own: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    const spec: OptionSpec = OPTIONS[name as OptionName];
    const parsed = spec.schema.safeParse(value ?? undefined);
    const given = { value, where: `${where}.${name}` };
    if (!parsed.success) throw new UsageError(valueError(name as OptionName, spec, given, parsed.error));
    if (value !== null) own[name] = parsed.data;
  }
  return { ...entry, options: own };
}

function fromFlag(name: OptionName, flags: ConfigSources['flags']): Given | undefined {
  const value = flags?.[name];
  if (value === undefined) return undefined;
  const spec: OptionSpec = OPTIONS[name];
  return {
    value: spec.kind === 'list' ? asList(value) : fromText(spec, value),
    where: `--${flagName(name)}`,
  };
}

function fromEnvironment(name: OptionName, environment: ConfigSources['environment']): Given | undefined {
  const value = environment?.[variableName(name)];
  if (value === undefined || value === '') return undefined;
  const spec: OptionSpec = OPTIONS[name];
  const read = spec.kind === 'list' ? value.split(',').map((text) => text.trim()) : fromText(spec, value);
  return { value: read, where: variableName(name) };
}

function asList(value: unknown): unknown {
  return typeof value === 'string' ? [value] : value;
}

/** Text as the option's own type. What does not look like it stays text, for the schema to refuse. */
function fromText(spec: OptionSpec, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const text = value.trim();
  if (spec.kind === 'number' && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  if (spec.kind === 'switch' && /^(true|1|yes|on)$/i.test(text)) return true;
  if (spec.kind === 'switch' && /^(false|0|no|off)$/i.test(text)) return false;
  return text;
}

function readConfigFile(path: string): Partial<Record<OptionName | 'models', Given>> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`The configuration file ${path} cannot be read: ${fileProblem(error)}`);
  }
  const content = parseYaml(text, `The configuration file ${path}`);
  if (content === null) return {};
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw new UsageError(
      `The configuration file ${path} must hold options with values, such as "port: 8000".`,
    );
  }
  const given: Partial<Record<OptionName | 'models', Given>> = {};
  for (const [key, value] of Object.entries(content)) {
    if (key === 'models') {
      given.models = { value, where: `models in ${path}` };
      continue;
    }
    const name = NAMES.find((option) => option === key || flagName(option) === key);
    if (name === undefined) {
      const meant = closestName(key, NAMES);
      const hint = meant === null ? ` Options: ${NAMES.join(', ')}.` : ` Did you mean ${meant}?`;
      throw new UsageError(`The configuration file ${path} has an unknown option ${key}.${hint}`);
    }
    const spec: OptionSpec = OPTIONS[name];
    const read = spec.kind === 'list' ? asList(value) : value;
    given[name] = { value: read ?? undefined, where: `${key} in ${path}` };
  }
  if (given.model !== undefined && given.models !== undefined) {
    throw new UsageError(
      `The configuration file ${path} has both model and models; models can hold all of them.`,
    );
  }
  return given;
}

function valueError(name: OptionName, spec: OptionSpec, given: Given | undefined, error: z.ZodError): string {
  const shown = JSON.stringify(given?.value);
  if (spec.choices !== undefined) {
    const meant = typeof given?.value === 'string' ? closestName(given.value, spec.choices) : null;
    const hint = meant === null ? '' : ` Did you mean ${meant}?`;
    return `${given?.where ?? name} is ${shown}; it must be one of ${spec.choices.join(', ')}.${hint}`;
  }
  return `${given?.where ?? name} is ${shown}; it must be ${error.issues[0]!.message}.`;
}
