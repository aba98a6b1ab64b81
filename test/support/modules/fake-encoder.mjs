// An encoder without a model: one value a sequence, the sum of its tokens. Options stand in the query of this module's
// URL: stepMs, and where `loads` names a file each load adds a byte to it.
import { appendFileSync } from 'node:fs';

const { searchParams } = new URL(import.meta.url);
const stepMs = Number(searchParams.get('stepMs') ?? 0);
const loads = searchParams.get('loads');
const THROWS = 97;
const NOT_FINITE = 98;
const DIES = 99;

export function loadEncoder(enginePath, { maxNumTokens = 64, maxNumSequences = 8, maxSeqLen = 32 }) {
  if (enginePath === 'missing') throw new Error('There is no such engine.');
  if (loads !== null) appendFileSync(loads, '.');
  return {
    executor: 'fake',
    instructionSet: 'none',
    threads: 1,
    limits: { maxNumTokens, maxNumSequences, maxSeqLen },
    vocabSize: 100,
    outputWidth: 1,
    config: {
      tokenTypes: 2,
      head: { kind: 'embedding', pooling: 'mean', normalize: false, matryoshka: null },
    },
    memory: { weightBytes: 0, kvCacheBytes: 0, secondaryKvCacheBytes: 0, workspaceBytes: 0 },
    encode: (sequences) => {
      if (stepMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stepMs);
      return Float32Array.from(sequences, ({ tokenIds }) => {
        if (tokenIds.includes(THROWS)) throw new Error('The token 97 cannot be.');
        if (tokenIds.includes(DIES)) process.exit(7);
        return tokenIds.includes(NOT_FINITE) ? Number.NaN : tokenIds.reduce((sum, id) => sum + id, 0);
      });
    },
    close: () => {},
  };
}
