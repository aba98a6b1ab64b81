import { worded } from '../../base/named-text.js';
import { mustBe } from '../../base/option-values.js';
import { parseGroupAddress } from '../../callbacks/group-address.js';
import type { RanksOptions } from '../../callbacks/ranks-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { GptManager } from '../../host/gpt-manager.js';
import { UsageError } from '../errors/user-errors.js';
import { flagOfOption } from '../options/flag-names.js';
import { flagName, type OptionName, optionOf, variableName } from '../options/table.js';
import { findEngines } from '../serving/find-engines.js';
import { openSecret, readSecret } from '../serving/leading-rank.js';
import type { ModelOptions } from '../serving/model-options.js';
import { showBuildProgress } from './build-progress.js';
import { listenForInterruption, rejection } from './interruption.js';
import { showPullProgress } from './pull-progress.js';

export interface RankFlags {
  address: string;
  rank: string;
  size: string;
  secretFile?: string;
  joinTimeoutSeconds?: string;
  tensorParallelSize?: string;
  pipelineParallelSize?: string;
  rankTimeoutSeconds?: string;
  threads?: string;
  weights?: string;
  outputWeights?: string;
  revision?: string;
  cacheDir?: string;
}

/** Flags of this command, by the names that the engine's errors use. */
const FLAGS: Readonly<Record<string, string>> = {
  'ranks.rank': '--rank',
  'ranks.size': '--size',
  'ranks.address': '--address',
  'ranks.secret': '--secret-file',
  secretFile: '--secret-file',
};
const LONGEST_JOIN_SECONDS = 86_400;

/**
 * Runs skein rank MODEL: joins the group and runs this rank's part of the model until rank 0 ends the group.
 *
 * @throws UsageError for flags that cannot be; HubError, CheckpointError, EngineError; what the group failed of
 */
export async function rank(model: string, flags: RankFlags): Promise<void> {
  const { secretFile } = flags;
  const place = placeOf(flags);
  const sizes = sizesOf(flags);
  if (secretFile !== undefined) {
    place.secret = inFlags(() => readSecret('secretFile', secretFile));
    const warning = openSecret(secretFile);
    if (warning !== null) tell(warning);
  }
  const interruption = listenForInterruption();
  try {
    const { engine } = await findEngines(modelOptions(model, flags, interruption.signal), true);
    const name = `rank ${place.rank} of ${place.size}`;
    const manager = inFlags(() => open(engine.directory, place, sizes, name));
    tell(`${name} comes to ${place.address}`);
    try {
      await Promise.race([follow(manager, name), rejection(interruption.signal)]);
    } finally {
      // Without an abort the others would wait for this rank up to their limit.
      await manager.terminate();
    }
  } finally {
    interruption.release();
  }
}

async function follow(manager: GptManager, name: string): Promise<void> {
  await manager.ready;
  await manager.ended;
  if (manager.failure !== null) throw manager.failure;
  tell(`${name} has ended with the group`);
}

function open(enginePath: string, ranks: RanksOptions, optionalParams: Sizes, name: string): GptManager {
  const manager = new GptManager({
    enginePath,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    // Requests and answers are rank 0's.
    getInferenceRequests: () => [],
    sendResponse: () => {},
    onStateChange: (state, failure) => {
      if (state === 'running') tell(`${name} is ready`);
      if (state === 'restarting') tell(`the group is started again: ${failure?.message ?? 'it has ended.'}`);
    },
    onError: ({ message }) => {
      // Whether the group is restarted, and why, is reported elsewhere.
      if (message !== manager.failure?.message) tell(message);
    },
    ranks,
    optionalParams,
  });
  return manager;
}

function placeOf({ address, rank, size, joinTimeoutSeconds = '120' }: RankFlags): RanksOptions {
  inFlags(() => parseGroupAddress(address));
  const place: RanksOptions = { rank: numberOf('--rank', rank), size: numberOf('--size', size), address };
  if (place.rank === 0) {
    throw new UsageError(
      '--rank is 0, which is the server: skein serve --ranks-address, or a program with a GptManager.',
    );
  }
  const seconds = numberOf('--join-timeout-seconds', joinTimeoutSeconds);
  if (seconds < 1 || seconds > LONGEST_JOIN_SECONDS) {
    throw new UsageError(
      `--join-timeout-seconds is ${seconds}; it must be from 1 to ${LONGEST_JOIN_SECONDS}.`,
    );
  }
  return { ...place, joinTimeoutMs: 1000 * seconds };
}

function numberOf(flag: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`${flag} is "${text}"; it must be a whole number.`);
}

interface Sizes {
  tensorParallelSize?: number;
  pipelineParallelSize?: number;
  rankTimeoutMs?: number;
  threads?: number;
}

function sizesOf(flags: RankFlags): Sizes {
  const number = (name: 'tensorParallelSize' | 'pipelineParallelSize' | 'rankTimeoutSeconds' | 'threads') =>
    chosen(name, flags[name], Number);
  const [tensorParallelSize, pipelineParallelSize] = [
    number('tensorParallelSize'),
    number('pipelineParallelSize'),
  ];
  if (tensorParallelSize === undefined && pipelineParallelSize === undefined) {
    throw new UsageError(
      `--size is ${flags.size}, but neither --tensor-parallel-size nor --pipeline-parallel-size is given; give what rank 0 has.`,
    );
  }
  const seconds = number('rankTimeoutSeconds');
  const threads = number('threads');
  return {
    ...(tensorParallelSize === undefined ? {} : { tensorParallelSize }),
    ...(pipelineParallelSize === undefined ? {} : { pipelineParallelSize }),
    ...(seconds === undefined ? {} : { rankTimeoutMs: 1000 * seconds }),
    ...(threads === undefined ? {} : { threads }),
  };
}

function modelOptions(model: string, flags: RankFlags, signal: AbortSignal): ModelOptions {
  return {
    model,
    revision: chosen('revision', flags.revision, String),
    cacheDir: chosen('cacheDir', flags.cacheDir, String),
    weights: chosen('weights', flags.weights, (text) => text as ModelOptions['weights']),
    outputWeights: chosen(
      'outputWeights',
      flags.outputWeights,
      (text) => text as ModelOptions['outputWeights'],
    ),
    executor: 'native',
    onDownload: showPullProgress(process.stderr),
    onProgress: showBuildProgress(process.stderr),
    signal,
  };
}

/** Value of a flag or its variable, as for serve; undefined: neither is given. @throws UsageError */
function chosen<T>(name: OptionName, flag: string | undefined, read: (text: string) => T): T | undefined {
  const variable = variableName(name);
  const text = flag ?? (process.env[variable] || undefined);
  if (text === undefined) return undefined;
  const value = read(text);
  const { values } = optionOf(name);
  if (values.accepts(value)) return value;
  const where = flag === undefined ? variable : `--${flagName(name)}`;
  throw new UsageError(`${where} is "${text}"; it must be ${mustBe(values, value)}.`);
}

/** Words an error about the options with this command's flags. @throws UsageError */
function inFlags<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    throw new UsageError(worded(error.text, ({ name }) => FLAGS[name] ?? flagOfOption(name) ?? name));
  }
}

function tell(line: string): void {
  process.stderr.write(`skein: ${line}\n`);
}
