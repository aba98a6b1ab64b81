import { closestName } from '../base/did-you-mean.js';
import { flagName, type OptionName } from './config-options.js';
import { nameOf } from './model-name.js';
import { UsageError } from './usage-error.js';

/** Options that a model of a --config file may have for itself; all others are the server's. */
export const OPTIONS_OF_A_MODEL = [
  'revision',
  'weights',
  'outputWeights',
  'kvDtype',
  'executor',
  'threads',
  'computeWeight',
  'modelType',
  'schedulerPolicy',
  'maxNumSequences',
  'maxBatchSize',
  'maxNumTokens',
  'maxBeamWidth',
  'maxWaitIterations',
  'startHorizon',
  'maxInterTokenLatencyMs',
  'speculate',
  'draftModel',
  'maxDraftLen',
  'maxQueueSize',
  'enableChunkedContext',
  'chunkingPolicy',
  'maxChunkMs',
  'enableBlockReuse',
  'enableTrtOverlap',
  'maxInputLen',
  'maxSeqLen',
  'defaultMaxTokens',
  'maxLogprobs',
  'toolCallParser',
  'reasoningParser',
  'maxTokens',
  'freeGpuMemoryFraction',
  'hostCacheSize',
  'secondaryOffloadMinPriority',
  'maxAttentionWindow',
  'sinkTokenLength',
  'tokensPerBlock',
  'watchdogTimeout',
] as const satisfies readonly OptionName[];

export type OptionOfAModel = (typeof OPTIONS_OF_A_MODEL)[number];

/** A model to serve, as the user named it. */
export interface ModelEntry {
  /** What clients ask for. */
  name: string;
  /** Further names for it. */
  aliases: readonly string[];
  /** Path of the model. */
  model: string;
}

/** An entry of `models` in a --config file, its own options not checked yet. */
export interface FileEntry extends ModelEntry {
  options: Partial<Record<OptionOfAModel, unknown>>;
}

/**
 * PATH, or NAME=PATH. A name does not begin with a dot, a slash or a tilde: what does is a path with an equals sign in it.
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

/** The list `models` of a --config file. @throws UsageError. */
export function fileEntries(list: unknown, where: string): FileEntry[] {
  if (!Array.isArray(list) || list.length === 0) {
    throw new UsageError(
      `${where} must be a list of models, such as [{"name": "chat", "model": "./smollm2"}].`,
    );
  }
  return list.map((entry: unknown, index) => fileEntry(entry, `${where}[${index}]`));
}

function fileEntry(entry: unknown, where: string): FileEntry {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    throw new UsageError(`${where} must be an object such as {"name": "chat", "model": "./smollm2"}.`);
  }
  const { name, model, aliases = [], ...rest } = entry as Record<string, unknown>;
  if (typeof model !== 'string' || model === '')
    throw new UsageError(`${where}.model must be the path of a model.`);
  if (name !== undefined && !isName(name)) throw new UsageError(`${where}.name must be ${NAME}.`);
  if (!Array.isArray(aliases) || !aliases.every(isName))
    throw new UsageError(`${where}.aliases must be a list of names.`);
  const options: FileEntry['options'] = {};
  for (const [key, value] of Object.entries(rest)) {
    const option = OPTIONS_OF_A_MODEL.find((candidate) => candidate === key || flagName(candidate) === key);
    if (option === undefined) {
      const meant = closestName(key, OPTIONS_OF_A_MODEL);
      const hint =
        meant === null ? ` Options of a model: ${OPTIONS_OF_A_MODEL.join(', ')}.` : ` Did you mean ${meant}?`;
      throw new UsageError(`${where} has an unknown option ${key}.${hint}`);
    }
    options[option] = value;
  }
  return { name: name === undefined ? nameOf(model) : (name as string), aliases, model, options };
}

const NAME = 'a text that is not empty';

function isName(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

/** @throws UsageError where two models go by one name. */
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
