import { readFileSync, statSync } from 'node:fs';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { simulate } from '../../engine/simulation/simulate.js';
import { SimulationInputError } from '../../engine/simulation/simulation-input.js';
import { UsageError } from '../config.js';
import { fileProblem } from '../file-problem.js';
import { simulationChart } from './simulation-chart.js';

const MAX_FILE_BYTES = 64 * 2 ** 20;

/**
 * Runs skein simulate FILE.json [--json]. @throws UsageError for a bad file, SimulationError for a load that cannot
 * run.
 */
export function simulateFile(path: string, flags: { json?: boolean }): void {
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
