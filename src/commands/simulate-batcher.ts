import { readFileSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import { mustBe, numberIn, shown, TEXT, type Values, wholeNumber } from '../../base/option-values.js';
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
import { type BatcherFlags, type BatcherLoad, batcherLoad, MAX_REQUESTS } from './batcher-flags.js';

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

const MAX_FILE_BYTES = 256 * 2 ** 20;
const MICROSECONDS = numberIn({ min: 0, max: Number.MAX_SAFE_INTEGER, integer: false });

/** Fields of a line, and what they are where it leaves them out; `at_us` it has to have. */
const FIELDS: Readonly<Record<string, { values: Values; absent?: number | string }>> = {
  at_us: { values: MICROSECONDS },
  rows: { values: wholeNumber(1, 65_536), absent: 1 },
  priority: { values: wholeNumber(0, Number.MAX_SAFE_INTEGER), absent: 0 },
  timeout_us: { values: MICROSECONDS, absent: 0 },
  shape: { values: TEXT, absent: '' },
};

/**
 * Reads the requests of a trace: a JSON object a line, in any order of their times.
 * @throws UsageError with file, line and field
 */
function readBatcherTrace(path: string): BatcherArrival[] {
  const arrivals: BatcherArrival[] = [];
  for (const [index, line] of readText(path).split('\n').entries()) {
    if (line.trim() === '') continue;
    if (arrivals.length === MAX_REQUESTS)
      throw wrong(path, index, `a trace has at most ${MAX_REQUESTS} requests`);
    arrivals.push(requestOf(path, index, line));
  }
  if (arrivals.length === 0) throw new UsageError(`The trace ${path} has no request.`);
  return arrivals.sort((one, other) => one.atUs - other.atUs);
}

function readText(path: string): string {
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, more than ${MAX_FILE_BYTES}`);
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new UsageError(`The trace ${path} cannot be read: ${fileProblem(error)}`);
  }
}

function requestOf(path: string, index: number, line: string): BatcherArrival {
  let given: unknown;
  try {
    given = JSON.parse(line);
  } catch {
    throw wrong(path, index, `the line is ${shown(line)}; it must be a JSON object`);
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw wrong(path, index, `the line is ${shown(given)}; it must be a JSON object`);
  const stranger = Object.keys(given).find((name) => !Object.hasOwn(FIELDS, name));
  if (stranger !== undefined)
    throw wrong(path, index, `there is no field ${stranger}; fields: ${Object.keys(FIELDS).join(', ')}`);
  const read = Object.entries(FIELDS).map(([name, { values, absent }]) => {
    const value = (given as Record<string, unknown>)[name] ?? absent;
    if (values.accepts(value)) return [name, value] as const;
    throw wrong(path, index, `${name} is ${shown(value)}; it must be ${mustBe(values, value)}`);
  });
  const fields = Object.fromEntries(read) as Record<string, number> & { shape: string };
  return {
    atUs: fields.at_us!,
    rows: fields.rows!,
    priority: fields.priority!,
    timeoutUs: fields.timeout_us!,
    fit: fields.shape,
  };
}

function wrong(path: string, index: number, text: string): UsageError {
  return new UsageError(`${path}:${index + 1}: ${text}.`);
}
