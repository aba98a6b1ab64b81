import { readFileSync, statSync } from 'node:fs';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { simulate } from '../../engine/simulation/simulate.js';
import { SimulationInputError } from '../../engine/simulation/simulation-input.js';
import { UsageError } from '../config.js';
import { fileProblem } from '../file-problem.js';
import type { BatcherFlags } from './batcher-flags.js';
import { simulationChart } from './simulation-chart.js';

const MAX_FILE_BYTES = 64 * 2 ** 20;

/** Flags of `skein simulate` as commander gives them. */
export type SimulateFlags = Omit<BatcherFlags, 'batcher'> & { batcher?: string };

/** Runs skein simulate: a file of requests for a text model, or a dynamic batcher. @throws UsageError, SimulationError */
export async function simulateCommandLine(path: string | undefined, flags: SimulateFlags): Promise<void> {
  const { json, batcher, ...load } = flags;
  if (batcher === undefined) {
    const [flag] = Object.keys(load);
    if (flag !== undefined)
      throw new UsageError(`--${kebab(flag)} is for --batcher; a file says it for each request.`);
    if (path === undefined) throw new UsageError("missing required argument 'FILE.json', or --batcher.");
    simulateFile(path, flags);
    return;
  }
  if (path !== undefined) throw new UsageError(`--batcher and ${path} exclude each other.`);
  const { simulateModelBatcher } = await import('./simulate-batcher.js');
  simulateModelBatcher({ ...flags, batcher });
}

const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

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
