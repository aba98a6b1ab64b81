import { readFileSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import { asSentence } from '../../base/sentences.js';
import {
  type BatcherArrival,
  type BatcherSimulationInput,
  simulateBatcher,
} from '../../engine/simulation/batcher-simulation.js';
import { arrivalTimes } from '../../loadgen/arrivals/arrivals.js';
import { Random } from '../../loadgen/random.js';
import { checkConfig } from '../../models/repository/check-config.js';
import { completeConfig } from '../../models/repository/complete-config.js';
import type { ModelConfig, ModelInput } from '../../models/repository/model-config.js';
import { ModelConfigError } from '../../models/repository/model-config-error.js';
import { parseModelConfig, readModelConfig } from '../../models/repository/read-model-config.js';
import { modelBatcher } from '../../scheduler/tensors/batcher-presets.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import { batcherChart } from './batcher-chart.js';
import { type BatcherFlags, type BatcherLoad, batcherLoad } from './batcher-flags.js';
import { readBatcherTrace } from './batcher-trace.js';

/** Tensors of a configuration that names none: batches are formed without them. */
const ANY_TENSOR = { name: 'ANY', data_type: 'TYPE_FP32', dims: [1] } as ModelInput;

/**
 * Runs skein simulate --batcher CONFIG: the dynamic batcher over a load, without a model.
 * @throws UsageError for a configuration, a flag or a trace that is wrong
 */
export function simulateModelBatcher(flags: BatcherFlags): void {
  const config = configOf(flags.batcher);
  const load = batcherLoad(flags);
  const instances = load.instances ?? config.instance_group.reduce((sum, { count }) => sum + count, 0);
  const arrivals = load.trace === undefined ? drawn(load) : readBatcherTrace(load.trace);
  checkRows(arrivals, config);
  const { computeUs } = load;
  const input: BatcherSimulationInput = { batcher: modelBatcher(config), instances, computeUs, arrivals };
  const result = simulateBatcher(input);
  process.stdout.write(flags.json ? `${JSON.stringify(result)}\n` : batcherChart(input, result));
}

/** The configuration of a model: its folder, one of the files that are read there, or JSON. */
function configOf(given: string): ModelConfig {
  try {
    const written = given.trimStart().startsWith('{')
      ? parseModelConfig(given, '--batcher', 'yaml')
      : readConfig(given);
    const { name = '', input = [], output = [] } = written.fields;
    const told = {
      ...(input.length === 0 ? { input: [ANY_TENSOR] } : {}),
      ...(output.length === 0 ? { output: [{ ...ANY_TENSOR, label_filename: '' }] } : {}),
    };
    const config = completeConfig(written, { name, folder: name, backend: '', defaultFilename: '', told });
    checkConfig(config, written);
    return config;
  } catch (error) {
    if (error instanceof ModelConfigError) throw new UsageError(error.message);
    throw error;
  }
}

function readConfig(path: string): ReturnType<typeof parseModelConfig> {
  let text: string;
  try {
    if (statSync(path).isDirectory()) {
      const written = readModelConfig(path);
      if (written === null) throw new UsageError(`--batcher: ${path} has no config.pbtxt, .json or .yaml.`);
      return written;
    }
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof UsageError || error instanceof ModelConfigError) throw error;
    throw new UsageError(`--batcher: ${path} cannot be read: ${fileProblem(error)}`);
  }
  return parseModelConfig(text, path, extname(path) === '.pbtxt' ? 'pbtxt' : 'yaml');
}

function checkRows(arrivals: readonly BatcherArrival[], { max_batch_size: most }: ModelConfig): void {
  const index = arrivals.findIndex(({ rows }) => rows > Math.max(1, most));
  if (index < 0) return;
  throw new UsageError(
    asSentence(
      `Request ${index + 1} has ${arrivals[index]!.rows} rows, and max_batch_size is ${most}: a server would refuse it`,
    ),
  );
}

/** Requests at random times of a rate, with rows drawn evenly from a list. */
function drawn({ rate, arrivals, requests, rows, seed }: BatcherLoad): BatcherArrival[] {
  const times = arrivalTimes({ kind: arrivals, rate }, new Random(seed, 0));
  const random = new Random(seed, 1);
  return Array.from({ length: requests }, () => ({
    atUs: 1e6 * times.next().value,
    rows: rows[random.below(rows.length)]!,
    fit: '',
    priority: 0,
    timeoutUs: 0,
  }));
}
