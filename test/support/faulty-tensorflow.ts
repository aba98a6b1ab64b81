import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setupFolder } from '../../engine/executors/tensorflow/installation.js';
import { testTensorFlow } from './test-tensorflow.js';

/** Pause before each call of a graph. Answers then take seconds, so that requests are still in flight when a call fails. */
const CALL_MS = 5;

/** A setup whose package is the real TensorFlow, slowed down, but for the next call of a graph after `fail`. */
export interface FaultyTensorFlow {
  /** To be given as SKEIN_CACHE_DIR. */
  cacheDirectory: string;
  /** The next call throws this instead of computing anything. */
  fail(message: string): void;
  remove(): void;
}

export function makeFaultyTensorFlow(): FaultyTensorFlow {
  const cacheDirectory = mkdtempSync(join(tmpdir(), 'skein-faulty-tensorflow-'));
  const fault = join(cacheDirectory, 'fault');
  const name = '@tensorflow/tfjs-node-gpu';
  const folder = setupFolder(cacheDirectory);
  const module = join(folder, 'node_modules', name);
  mkdirSync(module, { recursive: true });
  writeFileSync(join(module, 'package.json'), '{"main":"main.js"}');
  writeFileSync(
    join(module, 'main.js'),
    `const { existsSync, readFileSync, rmSync } = require('node:fs');
const tensorflow = require(${JSON.stringify(testTensorFlow!.folder)});
const backend = tensorflow.backend();
const run = backend.runSavedModel.bind(backend);
const never = new Int32Array(new SharedArrayBuffer(4));
backend.runSavedModel = (...given) => {
  Atomics.wait(never, 0, 0, ${CALL_MS});
  if (!existsSync(${JSON.stringify(fault)})) return run(...given);
  const message = readFileSync(${JSON.stringify(fault)}, 'utf8');
  rmSync(${JSON.stringify(fault)});
  throw new Error(message);
};
module.exports = tensorflow;
`,
  );
  const record = { package: name, packageVersion: '4.22.0', tensorflow: '2', library: null, gpu: false };
  writeFileSync(join(folder, 'skein-setup.json'), JSON.stringify(record));
  return {
    cacheDirectory,
    fail: (message) => {
      // Renamed into place, so that a reader never finds half of it.
      writeFileSync(`${fault}.new`, message);
      renameSync(`${fault}.new`, fault);
    },
    remove: () => rmSync(cacheDirectory, { recursive: true, force: true }),
  };
}
