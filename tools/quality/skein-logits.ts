import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { defaultThreads } from '../../base/topology.js';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import { buildEngine } from '../../engine/building/builder.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { readTokenizerFiles, Tokenizer } from '../../models/tokenizer/index.js';
import { SequenceDriver } from '../support/sequence-driver.js';
import { openExecutor } from '../support/test-engine.js';
import type { WindowLogits } from './divergence.js';
import { WINDOW, windowsOf } from './windows.js';

/**
 * The logits of the native executor.
 *
 * @param format precision of the weights; after a plus that of embedding and output layer, after a slash that of the cache
 * (default: bf16, of f32 weights f32), after an at sign the instruction set (default: the best)
 * @param text or its tokens in windows
 * @param folder for the engine, which is removed again
 */
export async function skeinLogits(
  model: string,
  format: string,
  text: string | number[][],
  folder: string,
): Promise<{ windows: number[][]; logits: WindowLogits }> {
  const [types, instructionSet] = format.split('@') as [string, InstructionSet?];
  const [weights, kvDtype = weights === 'f32' ? 'f32' : 'bf16'] = types.split('/') as [string, KvDtype?];
  const [precision, outputPrecision = 'auto'] = weights.split('+') as [string, string?];
  const outputDirectory = join(folder, format.replace('/', '-'));
  const engine = await buildEngine({ model, outputDirectory, precision, outputPrecision });
  const windows =
    typeof text === 'string'
      ? windowsOf(new Tokenizer(await readTokenizerFiles(outputDirectory)), text)
      : text;
  const executor = openExecutor(engine, {
    threads: defaultThreads(),
    maxNumTokens: WINDOW,
    maxLogitRows: WINDOW,
    maxSeqLen: WINDOW,
    kvDtype,
    ...(instructionSet !== undefined && { instructionSet }),
  });
  const driver = new SequenceDriver(executor, engine.manifest.config);
  const logits = windows.map((window) => {
    driver.begin(WINDOW);
    return driver.append(window, [...window.keys()].slice(0, -1));
  });
  executor.close();
  rmSync(outputDirectory, { recursive: true, force: true });
  return { windows, logits };
}
