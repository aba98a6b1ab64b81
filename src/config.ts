import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as z from 'zod';
import { closestName } from '../callbacks/did-you-mean.js';
import { asSentence } from '../callbacks/sentences.js';
import { flagName, OPTIONS, type OptionName, type OptionSpec, variableName } from './config-options.js';
import { fileProblem } from './file-problem.js';

/** The user asked for something that does not exist or does not fit. The message says what would. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Every option with its value. */
export type Config = { [Name in OptionName]: z.output<(typeof OPTIONS)[Name]['schema']> };

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
  const file = path === undefined ? {} : readConfigFile(path);
  const config: Record<string, unknown> = {};
  for (const name of NAMES) {
    const spec: OptionSpec = OPTIONS[name];
    const given = fromFlag(name, sources.flags) ?? fromEnvironment(name, sources.environment) ?? file[name];
    const parsed = spec.schema.safeParse(given?.value);
    if (!parsed.success) throw new UsageError(valueError(name, spec, given, parsed.error));
    config[name] = parsed.data;
  }
  return config as Config;
}

function fromFlag(name: OptionName, flags: ConfigSources['flags']): Given | undefined {
  const value = flags?.[name];
  if (value === undefined) return undefined;
  return { value: fromText(OPTIONS[name], value), where: `--${flagName(name)}` };
}

function fromEnvironment(name: OptionName, environment: ConfigSources['environment']): Given | undefined {
  const value = environment?.[variableName(name)];
  if (value === undefined || value === '') return undefined;
  return { value: fromText(OPTIONS[name], value), where: variableName(name) };
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

function readConfigFile(path: string): Partial<Record<OptionName, Given>> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`The configuration file ${path} cannot be read: ${fileProblem(error)}`);
  }
  let content: unknown;
  try {
    // Loaded only where there is a file: it takes a tenth of the start. JSON is YAML too.
    const yaml = createRequire(import.meta.url)('yaml') as typeof import('yaml');
    content = yaml.parse(text);
  } catch (error) {
    // Below its first line the parser draws where it stopped.
    const [reason] = (error as Error).message.split('\n');
    throw new UsageError(`The configuration file ${path} is neither JSON nor YAML: ${asSentence(reason!)}`);
  }
  if (content === null) return {};
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw new UsageError(
      `The configuration file ${path} must hold options with values, such as "port: 8000".`,
    );
  }
  const given: Partial<Record<OptionName, Given>> = {};
  for (const [key, value] of Object.entries(content)) {
    const name = NAMES.find((option) => option === key || flagName(option) === key);
    if (name === undefined) {
      const meant = closestName(key, NAMES);
      const hint = meant === null ? ` Options: ${NAMES.join(', ')}.` : ` Did you mean ${meant}?`;
      throw new UsageError(`The configuration file ${path} has an unknown option ${key}.${hint}`);
    }
    given[name] = { value: value ?? undefined, where: `${key} in ${path}` };
  }
  return given;
}

function valueError(name: OptionName, spec: OptionSpec, given: Given | undefined, error: z.ZodError): string {
  if (given === undefined) {
    return `--${flagName(name)} is required: ${spec.help} (${variableName(name)} and "${name}" in a --config file do as well).`;
  }
  const shown = JSON.stringify(given.value);
  if (spec.choices !== undefined) {
    const meant = typeof given.value === 'string' ? closestName(given.value, spec.choices) : null;
    const hint = meant === null ? '' : ` Did you mean ${meant}?`;
    return `${given.where} is ${shown}; it must be one of ${spec.choices.join(', ')}.${hint}`;
  }
  return `${given.where} is ${shown}; it must be ${error.issues[0]!.message}.`;
}
