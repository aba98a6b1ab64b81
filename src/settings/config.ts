import { readFileSync } from 'node:fs';
import { closestName, hintOf } from '../../base/did-you-mean.js';
import { mustBe } from '../../base/option-values.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import { fromText } from '../options/from-text.js';
import { optionCalled, refusalOf, refusalOfVariables } from '../options/old-names.js';
import { rateLimitResources } from '../options/rate-limit-resources.js';
import {
  flagName,
  OPTION_NAMES,
  OPTIONS,
  type Option,
  type OptionName,
  type OptionValues,
  optionOf,
  variableName,
} from '../options/table.js';
import { DEMO_MODEL_NAME, demoModelPath } from './demo-model.js';
import { adapterEntry, adapterPaths, adapterTexts, checkAdapters, withAdapters } from './lora-entries.js';
import {
  checkNames,
  entryName,
  type FileEntry,
  fileEntries,
  fileEntry,
  type ModelEntry,
  modelEntry,
} from './model-entries.js';
import { parseYaml } from './parse-yaml.js';

export { UsageError };

type OptionsOfAll = Omit<OptionValues, 'model' | 'servedModelName'>;

/** A model to serve, with its own options. */
export interface ConfiguredModel extends ModelEntry {
  options: Partial<OptionsOfAll>;
  /** Paths of its LoRA adapters by their names. */
  adapters: Readonly<Record<string, string>>;
}

/** Every option with its value, and the models. */
export interface Config extends OptionsOfAll {
  /** The models, at least one where there is neither a model repository nor a folder of models; no two of a name. Requests that name none get the first. */
  models: readonly ConfiguredModel[];
}

export interface ConfigSources {
  /** Values from the command line, as text; true and false for switches. */
  flags?: Readonly<Record<string, unknown>>;
  environment?: Readonly<Record<string, string | undefined>>;
  /** Path of a JSON or YAML file. */
  file?: string | undefined;
  /** Flags of a command that calls an option by another name, for errors. */
  called?: Partial<Record<OptionName, string>>;
}

interface Given {
  value: unknown;
  /** Spelling of the option in its source, for errors. */
  where: string;
}

/**
 * Loads the configuration, each option from the first source that has it: flag, environment, file, default.
 * @throws UsageError naming the source and the expected value.
 */
export function loadConfig(sources: ConfigSources): Config {
  const refused = refusalOfVariables(sources.environment ?? {});
  if (refused !== null) throw new UsageError(refused);
  const path = sources.file ?? sources.environment?.SKEIN_CONFIG;
  const { models, ...file } = path === undefined ? {} : readConfigFile(path);
  const config: Record<string, unknown> = {};
  const where: Partial<Record<OptionName, string>> = {};
  for (const option of OPTIONS) {
    const { name } = option;
    const given =
      fromFlag(option, sources.flags, sources.called) ??
      fromEnvironment(option, sources.environment) ??
      file[name];
    config[name] = checkedValue(option, given);
    if (given !== undefined) where[name] = given.where;
  }
  const { model, servedModelName, ...options } = config as OptionValues;
  checkRepository(options);
  if (
    options.modelMemoryBytes !== undefined &&
    options.modelsDir === undefined &&
    options.nats === undefined
  ) {
    throw new UsageError('--model-memory-bytes needs --models-dir: it is of the models in this folder.');
  }
  const bringsModels = options.modelRepository !== undefined || options.modelsDir !== undefined;
  checkSharedAddress(options);
  if (bringsModels && model === undefined && models === undefined) {
    if (servedModelName !== undefined) {
      throw new UsageError(`${where.servedModelName} names a model of --model, and there is none.`);
    }
    withAdapters([], options.lora, where.lora);
    checkAdapters(options, []);
    if (options.kvEventsEndpoint !== undefined) {
      throw new UsageError(`${where.kvEventsEndpoint} is for a model of --model, and there is none.`);
    }
    return { ...options, models: [] };
  }
  const named = modelsOf(model, servedModelName, models, where);
  const adapted = withAdapters(named, options.lora, where.lora);
  checkAdapters(options, adapted);
  checkKvEvents(options, adapted);
  checkRanksAddresses(options, adapted);
  return { ...options, models: adapted };
}

/** @throws UsageError where each model of a folder would listen for its ranks at one address */
function checkSharedAddress({ ranksAddress, modelsDir, modelRepository }: OptionsOfAll): void {
  if (ranksAddress === undefined) return;
  const isOfOne = (folder: string, owns: string) =>
    new UsageError(
      `--ranks-address is of one model, but each of ${folder} would take it; give it to a model in ${owns}.`,
    );
  const inFile = 'an entry of models in a --config file';
  if (modelsDir !== undefined) throw isOfOne('--models-dir', inFile);
  if (modelRepository !== undefined) {
    throw isOfOne('--model-repository', `${inFile}, or in the parameters of its config.pbtxt`);
  }
}

/** @throws UsageError where two models would listen for their ranks at one address */
function checkRanksAddresses(shared: OptionsOfAll, models: readonly ConfiguredModel[]): void {
  const owners = new Map<string, string>();
  for (const { name, options } of models) {
    const address = options.ranksAddress ?? shared.ranksAddress;
    if (address === undefined) continue;
    const owner = owners.get(address);
    if (owner !== undefined) {
      throw new UsageError(
        `--ranks-address ${address} is of both models ${owner} and ${name}, and only one group of ranks can meet there; give each model its own in an entry of models in a --config file.`,
      );
    }
    owners.set(address, name);
  }
}

/** @throws UsageError for options of the model repository that have no effect with the others */
function checkRepository({
  modelRepository,
  modelControlMode,
  loadModel,
  allowModelUpload,
  rateLimit,
  rateLimitResource,
}: OptionsOfAll): void {
  if (loadModel?.includes('*') && loadModel.length > 1) {
    throw new UsageError(
      `--load-model is * together with ${loadModel.length - 1} more: * loads all models, so it is expected alone.`,
    );
  }
  if (loadModel !== undefined && modelControlMode !== 'explicit') {
    throw new UsageError(
      '--load-model names models to load with --model-control-mode explicit; without it all are loaded.',
    );
  }
  if (allowModelUpload && modelControlMode !== 'explicit') {
    throw new UsageError(
      '--allow-model-upload needs --model-control-mode explicit: only then clients load models.',
    );
  }
  if (rateLimitResource !== undefined) {
    if (rateLimit === 'off')
      throw new UsageError(
        '--rate-limit-resource needs --rate-limit execution_count: nothing is limited without it.',
      );
    rateLimitResources(rateLimitResource);
  }
  if (modelRepository !== undefined) return;
  if (rateLimit !== 'off')
    throw new UsageError(
      '--rate-limit execution_count needs --model-repository: it limits models of folders.',
    );
  if (loadModel !== undefined) throw new UsageError('--load-model needs --model-repository.');
  if (modelControlMode === 'poll') {
    throw new UsageError('--model-control-mode poll needs --model-repository: it is what is looked at.');
  }
}

/** @throws UsageError where two models have one address for their events */
function checkKvEvents(shared: OptionsOfAll, models: readonly ConfiguredModel[]): void {
  const takenBy = new Map<string, string>();
  for (const { name, options } of models) {
    const { kvEventsEndpoint, kvEventsReplayEndpoint } = { ...shared, ...options };
    for (const address of [kvEventsEndpoint, kvEventsReplayEndpoint]) {
      if (address === undefined) continue;
      const other = takenBy.get(address);
      if (other !== undefined && !/:(\*|0)$/.test(address)) {
        throw new UsageError(
          `${address} is an address of events of the KV cache for ${other === name ? `two things of ${name}` : `the models ${other} and ${name}`}; each needs its own (kvEventsEndpoint and kvEventsReplayEndpoint of a model in a --config file).`,
        );
      }
      takenBy.set(address, name);
    }
  }
}

/** What was given, or the default. @throws UsageError */
function checkedValue(option: Option, given: Given | undefined): unknown {
  if (given?.value === undefined) return option.flag.default;
  if (option.values.accepts(given.value)) return given.value;
  throw new UsageError(valueError(option, given));
}

/** Models of flags and environment take the place of all those of a file. */
function modelsOf(
  texts: OptionValues['model'],
  names: OptionValues['servedModelName'],
  list: Given | undefined,
  where: Partial<Record<OptionName, string>>,
): ConfiguredModel[] {
  const models =
    texts === undefined && list === undefined
      ? [demoModel()]
      : texts === undefined
        ? fileEntries(list!.value, list!.where).map((entry, index) =>
            configured(entry, entryName(list!.where, index)),
          )
        : texts.map((text) => ({ ...modelEntry(text, where.model!), options: {}, adapters: {} }));
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

/** The model that comes with the package. @throws UsageError where the package has none. */
function demoModel(): ConfiguredModel {
  const model = demoModelPath();
  if (model !== null) return { name: DEMO_MODEL_NAME, aliases: [], model, options: {}, adapters: {} };
  throw new UsageError(
    `--model is required: ${optionOf('model').flag.help} (SKEIN_MODEL, and "model" or "models" in a --config file do as well).`,
  );
}

/** A model whose options were written as texts, by their names. @throws UsageError for a wrong value, or one that is no option of a model */
export function modelOfTexts(
  name: string,
  model: string,
  texts: Readonly<Record<string, string>>,
  where: string,
): ConfiguredModel {
  const typed = Object.entries(texts).map(([key, text]) => {
    const name = optionCalled(key);
    if (name === null) return [key, text.trim()];
    const option = optionOf(name);
    return [key, option.values.kind === 'list' ? listOfText(text) : fromText(option, text)];
  });
  return configured(fileEntry({ ...Object.fromEntries(typed), name, model }, where), where);
}

function configured({ options, ...entry }: FileEntry, where: string): ConfiguredModel {
  const given: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === null) continue;
    const option = optionOf(name as OptionName);
    const read = listOfFile(option, value);
    given[name] = checkedValue(option, { value: read, where: `${name} of ${where}` });
  }
  const { lora, ...rest } = given as Partial<OptionsOfAll>;
  const adapters = (lora ?? []).map((text) => adapterEntry(text, `lora of ${where}`));
  const own = [entry.name, ...entry.aliases];
  const other = adapters.find(({ base }) => base !== null && !own.includes(base));
  if (other !== undefined) {
    throw new UsageError(
      `lora of ${where}: the adapter '${other.name}' names '${other.base}' as its base; in the entry of '${entry.name}' it can be of that model alone.`,
    );
  }
  return { ...entry, options: rest, adapters: adapterPaths(adapters, `lora of ${where}`) };
}

/** Values of a list in one text, with commas between them; JSON is one value, or a list. */
function listOfText(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed.startsWith('{')) return [trimmed];
  if (trimmed.startsWith('[')) {
    try {
      return adapterTexts(JSON.parse(trimmed));
    } catch {
      // Not JSON: values that begin so.
    }
  }
  return trimmed.split(',').map((one) => one.trim());
}

/** Value of an option from its flag or an alias. @throws UsageError where both are given. */
function fromFlag(
  option: Option,
  flags: ConfigSources['flags'],
  spelled: ConfigSources['called'] = {},
): Given | undefined {
  const { name, values, flag } = option;
  const names = [name, ...(flag.aliases ?? [])].filter((one) => flags?.[one] !== undefined);
  const [called, second] = names;
  if (called === undefined) return undefined;
  const where = spelled[name] ?? `--${flagName(called)}`;
  if (second !== undefined) {
    throw new UsageError(`${where} and --${flagName(second)} are one option; give one of them.`);
  }
  const value = flags![called];
  return { value: values.kind === 'list' ? asList(value) : fromText(option, value), where };
}

function fromEnvironment(option: Option, environment: ConfigSources['environment']): Given | undefined {
  const { name, values } = option;
  const value = environment?.[variableName(name)];
  if (value === undefined || value === '') return undefined;
  const read = values.kind === 'list' ? listOfText(value) : fromText(option, value);
  return { value: read, where: variableName(name) };
}

/** A value of a file, in which a list of one may be written as the one, and a size with its unit. */
function listOfFile(option: Option, value: unknown): unknown {
  const { name, values, flag } = option;
  if (name === 'lora') return adapterTexts(value);
  if (flag.unit === 'bytes') return fromText(option, value);
  return values.kind === 'list' ? asList(value) : value;
}

function asList(value: unknown): unknown {
  return typeof value === 'string' ? [value] : value;
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
    const name = optionCalled(key);
    if (name === null) throw new UsageError(unknownKey(key, path));
    if (given[name] !== undefined) {
      throw new UsageError(`The configuration file ${path} has ${name} twice, by two names.`);
    }
    const read = listOfFile(optionOf(name), value);
    given[name] = { value: read ?? undefined, where: `${key} in ${path}` };
  }
  if (given.model !== undefined && given.models !== undefined) {
    throw new UsageError(
      `The configuration file ${path} has both model and models; models can hold all of them.`,
    );
  }
  return given;
}

function unknownKey(key: string, path: string): string {
  const now = refusalOf(key, (option) => option);
  if (now !== null) return `The configuration file ${path}: ${now}`;
  return `The configuration file ${path} has an unknown option ${key}; ${hintOf(key, OPTION_NAMES, 'skein serve --help')}`;
}

function valueError({ values, flag }: Option, { value: given, where }: Given): string {
  const { choices = [] } = values;
  const [only] = Array.isArray(given) && given.length === 1 ? given : [given];
  const value = typeof only === 'string' ? only : given;
  const meant = typeof value === 'string' ? closestName(value, choices) : null;
  const hint = meant === null ? '' : ` Did you mean ${meant}?`;
  const units = flag.unit === 'bytes' ? ', or a size with its unit such as 1.5GB or 512MiB' : '';
  // As JSON a number that is too large would be null.
  const found = typeof value === 'number' ? String(value) : JSON.stringify(value);
  return `${where} is ${found}; it must be ${mustBe(values, value)}${units}.${hint}`;
}
