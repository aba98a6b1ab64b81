import { counted } from '../../base/sentences.js';
import type { ExecutorChoice } from '../../callbacks/gpt-manager-options.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { UsageError } from '../errors/usage-error.js';
import { checkedSampling, samplingFields } from '../generation/sampling-defaults.js';
import { localModel } from '../hub/local-model.js';
import { refusalOfVariables } from '../options/old-names.js';
import { flagName, optionOf, variableName } from '../options/table.js';
import { threadsWithReason } from '../settings/thread-count.js';
import { describeModel, type ModelDescription } from './model-description.js';
import { showPullProgress } from './pull-progress.js';

export interface InfoFlags {
  length?: string;
  revision?: string;
  executor?: string;
  kvCacheDtype?: string;
  json?: boolean;
}

/** Runs skein info MODEL. @throws UsageError, HubError, CheckpointError, EngineError, TokenizerError, AddonError. */
export async function info(
  model: string,
  { length: given, executor, kvCacheDtype, revision, json }: InfoFlags,
): Promise<void> {
  const length = given === undefined ? undefined : Number(given);
  if (length !== undefined && !(Number.isSafeInteger(length) && length > 0))
    throw new UsageError(`--length is "${given}"; it must be a whole number of tokens of at least 1.`);
  const path = await localModel(model, { revision, onProgress: showPullProgress(process.stderr) });
  const cache = chosen('kvCacheDtype', kvCacheDtype);
  const description = await describeModel(path, {
    length,
    executor: chosen('executor', executor),
    kvDtype: cache === 'auto' ? undefined : cache,
  });
  if (length !== undefined && length > description.maxSeqLen) {
    throw new UsageError(
      `--length is ${length}, and a sequence of this model has ${description.maxSeqLen} tokens at most.`,
    );
  }
  const named = { model, ...description };
  process.stdout.write(json ? `${JSON.stringify(named)}\n` : textOf(named));
}

/** Value of a flag or its variable, as for serve. @throws UsageError */
function chosen(name: 'executor', flag: string | undefined): ExecutorChoice;
function chosen(name: 'kvCacheDtype', flag: string | undefined): 'auto' | KvDtype;
function chosen(name: 'executor' | 'kvCacheDtype', flag: string | undefined): string {
  const variable = variableName(name);
  const { values, flag: option } = optionOf(name);
  const refused = refusalOfVariables(process.env);
  if (refused !== null) throw new UsageError(refused);
  const given = flag ?? (process.env[variable] || option.default);
  if (values.accepts(given)) return given as string;
  const where = flag === undefined ? variable : `--${flagName(name)}`;
  throw new UsageError(`${where} is "${given}"; it must be ${values.expected}.`);
}

const TASKS = { generate: 'generates text', embed: 'embeds texts', score: 'scores pairs of texts' };

function textOf(description: ModelDescription & { model: string }): string {
  const { model, path, format, architecture, task, parameters, storedTypes, hasChatTemplate, kvCache } =
    description;
  const types = Object.entries(storedTypes ?? {}).map(([type, count]) => `${count} ${type}`);
  const rows: [string, string][] = [
    ['model', model === path ? model : `${model}, in ${path}`],
    ['architecture', `${architecture}, which ${TASKS[task]}; ${(parameters / 1e6).toFixed(1)} M parameters`],
    [
      'layers',
      `${description.numLayers} of width ${description.hiddenSize}, vocabulary of ${description.vocabSize}`,
    ],
    ...expertsRow(description),
    ['stored as', types.length === 0 ? format : `${format}: tensors ${types.join(', ')}`],
    ...leftAsideRow(description),
    ...description.remarks.map((remark, i): [string, string] => [i === 0 ? 'remarks' : '', remark]),
    ['context', `${description.maxSeqLen} tokens`],
    ...windowRow(description),
    ...(hasChatTemplate === null
      ? []
      : [['chat template', hasChatTemplate ? 'yes' : 'no'] as [string, string]]),
    ...endsRow(description),
    ...samplingRows(description),
    [
      'weights',
      `${description.weights}, output ${description.outputWeights}, ${bytes(description.weightBytes)}`,
    ],
    ['executor', executorText(description)],
    ['kernels', `${description.instructionSet}, ${threadsWithReason(description.threads)}`],
  ];
  if (kvCache !== null) {
    rows.push(['KV cache', `${bytes(kvCache.bytesPerToken)} a token in ${kvCache.dtype}`]);
    rows.push(['fits now', `${kvCache.tokens} tokens in ${bytes(kvCache.bytes)}`]);
    for (const { length, count } of kvCache.sequences)
      rows.push(['', `${count} sequences of ${length} tokens`]);
  }
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('');
}

/** Text about the executor; the sentence about a fallback names the executor too. */
function executorText({ executor, executorFallback }: ModelDescription): string {
  return executorFallback ?? executor;
}

function expertsRow({ experts }: ModelDescription): [string, string][] {
  if (experts === null) return [];
  return [['experts', `${experts.count} in each layer, of which a token goes to ${experts.used}`]];
}

function leftAsideRow({ leftAside }: ModelDescription): [string, string][] {
  if (leftAside.length === 0) return [];
  const parts = leftAside.map(({ part, tensors }) => `${part} (${counted(tensors, 'tensor')})`);
  return [['left aside', parts.join(', ')]];
}

function endsRow({ endTokens }: ModelDescription): [string, string][] {
  if (endTokens.length === 0) return [];
  return [['ends', endTokens.map(({ id, text }) => `${text} (${id})`).join(', ')]];
}

/** Recommendations that hold as defaults, by their source, and those that do not. */
function samplingRows({ sampling }: ModelDescription): [string, string][] {
  const { leftOut, defaults } = checkedSampling(sampling ?? {});
  const holding = Object.entries(samplingFields(defaults));
  const sources = new Set(holding.map(([name]) => sampling![name]!.from));
  const rows = [...sources].map((source) => {
    const own = holding.filter(([name]) => sampling![name]!.from === source);
    return `${own.map(([name, value]) => `${name} ${value}`).join(', ')} (${source})`;
  });
  return [...rows, ...leftOut].map((text, i): [string, string] => [i === 0 ? 'sampling' : '', text]);
}

function windowRow({ attentionWindow, numLayers }: ModelDescription): [string, string][] {
  if (attentionWindow === null) return [];
  const { tokens, layers } = attentionWindow;
  const which = layers === numLayers ? 'all layers' : `${layers} of ${numLayers} layers`;
  return [['window', `${which} attend to the last ${tokens} tokens`]];
}

function bytes(count: number): string {
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(0)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}
