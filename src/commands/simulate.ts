import { readFileSync, statSync } from 'node:fs';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { simulate } from '../../engine/simulation/simulate.js';
import { SimulationInputError } from '../../engine/simulation/simulation-input.js';
import { fileProblem } from '../errors/file-problem.js';
import { flagName } from '../options/table.js';
import { UsageError } from '../settings/config.js';
import type { BatcherFlags } from './batcher-flags.js';
import type { ClusterFlags } from './cluster-flags.js';
import { simulationChart } from './simulation-chart.js';

const MAX_FILE_BYTES = 64 * 2 ** 20;

/** Flags of `skein simulate` as commander gives them. */
export type SimulateFlags = Partial<BatcherFlags & ClusterFlags>;

/** Flags that --batcher and --workers share. */
const OF_BOTH = new Set(['rate', 'requests', 'seed', 'json']);
const OF_BATCHER = new Set(['batcher', 'arrivals', 'rows', 'batchUs', 'rowUs', 'instances', 'trace']);

/**
 * Runs skein simulate: a file of requests for a text model, a dynamic batcher, or many workers.
 * @throws UsageError, SimulationError
 */
export async function simulateCommandLine(path: string | undefined, flags: SimulateFlags): Promise<void> {
  const { batcher, workers } = flags;
  const names = Object.keys(flags).filter((name) => name !== 'json');
  if (batcher !== undefined && workers !== undefined)
    throw new UsageError('--batcher and --workers exclude each other.');
  if (batcher === undefined && workers === undefined) {
    const [name] = names;
    if (name !== undefined) throw new UsageError(`--${flagName(name)} is for ${ownersOf(name)}.`);
    if (path === undefined)
      throw new UsageError("missing required argument 'FILE.json', or --batcher, or --workers.");
    simulateFile(path, flags);
    return;
  }
  const mode = batcher === undefined ? '--workers' : '--batcher';
  if (path !== undefined) throw new UsageError(`${mode} and ${path} exclude each other.`);
  const foreign = names.find((name) => !OF_BOTH.has(name) && OF_BATCHER.has(name) !== (mode === '--batcher'));
  if (foreign !== undefined) throw new UsageError(`--${flagName(foreign)} is for ${ownersOf(foreign)}.`);
  if (batcher === undefined) {
    const { simulateWorkers } = await import('./simulate-cluster.js');
    simulateWorkers({ ...flags, workers: workers! });
    return;
  }
  const { simulateModelBatcher } = await import('./simulate-batcher.js');
  simulateModelBatcher({ ...flags, batcher });
}

function ownersOf(name: string): string {
  if (OF_BOTH.has(name)) return '--batcher and --workers; a file says it for each request';
  return OF_BATCHER.has(name) ? '--batcher' : '--workers';
}

/**
 * Runs skein simulate FILE.json [--json]. @throws UsageError for a bad file, SimulationError for a load that cannot
 * run.
 */
function simulateFile(path: string, flags: { json?: boolean }): void {
  const input = readInput(path);
  try {
    const result = simulate(input);
    process.stdout.write(flags.json ? `${JSON.stringify(result)}\n` : simulationChart(input, result));
  } catch (error) {
    if (error instanceof SimulationInputError) throw new UsageError(`${path}: ${error.message}`);
    throw error;
  }
}

/** Reads any JSON; `simulate` checks its content. */
function readInput(path: string): Parameters<typeof simulate>[0] {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, more than ${MAX_FILE_BYTES}`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`The simulation ${path} cannot be read: ${fileProblem(error)}`);
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new UsageError(`The simulation ${path} is not JSON: ${asSentence(messageOf(error))}`);
  }
}
