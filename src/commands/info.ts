import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { counted } from '../../base/sentences.js';
import { threadsWithReason } from '../../base/topology.js';
import type { ExecutorChoice } from '../../callbacks/gpt-manager-options.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { UsageError } from '../errors/user-errors.js';
import { checkedSampling, samplingFields } from '../generation/sampling-defaults.js';
import { describedModel } from '../hub/local-model.js';
import { refusalOfVariables } from '../options/old-names.js';
import { flagName, optionOf, variableName } from '../options/table.js';
import { type DescriptionOptions, describeModel, type ModelDescription } from './model-description.js';

export interface InfoFlags {
  length?: string;
  revision?: string;
  executor?: string;
  kvCacheDtype?: string;
  mmproj?: string;
  json?: boolean;
}

/** Runs skein info MODEL. @throws UsageError, HubError, CheckpointError, EngineError, TokenizerError, AddonError. */
export async function info(
  model: string,
  { length: given, executor, kvCacheDtype, mmproj, revision, json }: InfoFlags,
): Promise<void> {
  const length = given === undefined ? undefined : Number(given);
  if (length !== undefined && !(Number.isSafeInteger(length) && length > 0))
    throw new UsageError(`--length is "${given}"; it must be a whole number of tokens of at least 1.`);
  const cache = chosen('kvCacheDtype', kvCacheDtype);
  const options = {
    length,
    executor: chosen('executor', executor),
    kvDtype: cache === 'auto' ? undefined : cache,
    mmproj,
  };
  const description = await describe(model, revision, options);
  if (length !== undefined && length > description.maxSeqLen) {
    throw new UsageError(
      `--length is ${length}, and a sequence of this model has ${description.maxSeqLen} tokens at most.`,
    );
  }
  const named = { model, ...description };
  process.stdout.write(json ? `${JSON.stringify(named)}\n` : textOf(named));
}

/** Describes a model that is here, or one of the hub by its headers, which are gone afterwards. */
async function describe(
  model: string,
  revision: string | undefined,
  options: DescriptionOptions,
): Promise<ModelDescription> {
  let folder: string | null = null;
  const makeFolder = () => {
    folder = mkdtempSync(join(tmpdir(), 'skein-described-'));
    return folder;
  };
  try {
    const { path, remote } = await describedModel(model, makeFolder, { revision });
    return await describeModel(path, { ...options, remote });
  } catch (error) {
    throw folder === null ? error : withoutFolder(error, folder, model);
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
}

/** The error with the model's name in place of a folder that is gone. */
function withoutFolder(error: unknown, folder: string, model: string): unknown {
  if (error instanceof Error) error.message = error.message.replaceAll(folder, model);
  return error;
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

const TASKS = {
  generate: 'generates text',
  embed: 'embeds texts',
  score: 'scores pairs of texts',
  classify: 'classifies texts',
};

function textOf(description: ModelDescription & { model: string }): string {
  const { architecture, task, parameters, kvCache } = description;
  const rows: [string, string][] = [
    ['model', placeOf(description)],
    ['architecture', `${architecture}, which ${TASKS[task]}; ${countText(parameters)} parameters`],
    [
      'layers',
      `${description.numLayers} of width ${description.hiddenSize}, vocabulary of ${description.vocabSize}`,
    ],
    ...expertsRow(description),
    ['stored as', storedText(description)],
    ...leftAsideRow(description),
    ...listed('remarks', description.remarks),
    ['context', `${description.maxSeqLen} tokens`],
    ...windowRow(description),
    ['chat template', templateText(description)],
    ...endsRow(description),
    ...samplingRows(description),
    ['weights', weightsText(description)],
    ...picturesRow(description),
    ['executor', description.executor],
    ['kernels', `${description.instructionSet}, ${threadsWithReason(description.threads)}`],
  ];
  rows.push(...listed('slow', description.slow));
  if (kvCache !== null) {
    rows.push(['KV cache', `${bytes(kvCache.bytesPerToken)} a token in ${kvCache.dtype}`]);
    rows.push(['fits now', `${kvCache.tokens} tokens in ${bytes(kvCache.bytes)}`]);
    for (const { length, count } of kvCache.sequences)
      rows.push(['', `${count} sequences of ${length} tokens`]);
  }
  if (description.states !== null) {
    const { bytesPerSequence, sequences } = description.states;
    rows.push([
      'states',
      `${bytes(bytesPerSequence)} a sequence of any length; ${sequences} sequences fit now`,
    ]);
  }
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('');
}

/** Several lines under one name. */
function listed(name: string, texts: readonly string[]): [string, string][] {
  return texts.map((text, i) => [i === 0 ? name : '', text]);
}

function placeOf({ model, path, remote }: ModelDescription & { model: string }): string {
  if (remote === null) return model === path ? model : `${model}, in ${path}`;
  const { commit, files, bytes: size } = remote;
  return `${model} at ${commit.slice(0, 12)} of the hub: ${counted(files, 'file')} of ${bytes(size)}, not downloaded`;
}

function storedText({ format, storedTypes, storedBytes }: ModelDescription): string {
  const types = Object.entries(storedTypes ?? {}).map(([type, count]) => `${count} ${type}`);
  return storedBytes === null ? format : `${format}: tensors ${types.join(', ')}; ${bytes(storedBytes)}`;
}

function templateText({ chatTemplate }: ModelDescription): string {
  if (chatTemplate === null) return 'none: conversations are refused, prompts are completed';
  const { problem, tools, reasoning, reasoningSwitch, readsParts, others } = chatTemplate;
  if (problem !== null) return problem;
  const thinks = reasoningSwitch === null ? 'reasoning' : `reasoning (${reasoningSwitch})`;
  return [
    tools === null ? 'no functions of its own' : `functions (${tools})`,
    ...(reasoning === null ? [] : [thinks]),
    readsParts ? 'contents in parts' : 'contents as text',
    ...(others.length === 0 ? [] : [`others: ${others.join(', ')}`]),
  ].join(', ');
}

/** What the matrices become. Where each keeps a form of its own, those are listed. */
function weightsText({ weights, outputWeights, weightForms, weightBytes }: ModelDescription): string {
  if (weightForms === null) return `${weights}, output ${outputWeights}, ${bytes(weightBytes)}`;
  const forms = Object.entries(weightForms).map(([form, count]) => `${count} ${form}`);
  const output = outputWeights === 'stored' ? '' : `, output ${outputWeights}`;
  return `each matrix by how it is stored (${forms.join(', ')})${output}, ${bytes(weightBytes)}`;
}

function countText(parameters: number): string {
  if (parameters < 1e5) return String(parameters);
  return parameters < 1e9 ? `${(parameters / 1e6).toFixed(1)} M` : `${(parameters / 1e9).toFixed(2)} billion`;
}

function expertsRow({ experts, numLayers }: ModelDescription): [string, string][] {
  if (experts === null) return [];
  const { count, used, layers, hasShared } = experts;
  const where = layers === numLayers ? 'each layer' : `${layers} of ${numLayers} layers`;
  const more = hasShared ? ', and all tokens to one more' : '';
  return [['experts', `${count} in ${where}, of which a token goes to ${used}${more}`]];
}

function leftAsideRow({ leftAside }: ModelDescription): [string, string][] {
  if (leftAside.length === 0) return [];
  const parts = leftAside.map(({ part, tensors }) => `${part} (${counted(tensors, 'tensor')})`);
  return [['left aside', parts.join(', ')]];
}

function picturesRow({ pictures }: ModelDescription): [string, string][] {
  if (pictures === null) return [];
  if ('problem' in pictures) return [['pictures', `none: ${pictures.problem}`]];
  const { precision, weightBytes, keptBytes } = pictures;
  return [
    [
      'pictures',
      `a tower in ${precision}, ${bytes(weightBytes)}; up to ${bytes(keptBytes)} of its rows are kept`,
    ],
  ];
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
  const none = sampling === null ? [] : ['nothing recommended: temperature 1 where a request says nothing'];
  return listed('sampling', rows.length + leftOut.length === 0 ? none : [...rows, ...leftOut]);
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
