import { spawn } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { greatestError, naiveLogits } from '../../../support/naive-network.js';
import { executorOptions, instructionSets } from '../../../support/native-options.js';

let tiny: TinyNetwork;
beforeEach(() => {
  tiny = makeTinyNetwork();
});
afterEach(() => tiny.remove());

function logitsOf(network: TinyNetwork = tiny, changes = {}): Float32Array {
  const executor = new NativeExecutor(network, executorOptions(changes));
  const logits = executor
    .forward(
      makeStepBatch([{ tokens: [1, 2, 3], cached: 0, blocks: [0] }], {
        tokensPerBlock: 16,
        inverseFrequencies: network.inverseFrequencies,
      }),
    )
    .slice();
  executor.close();
  return logits;
}

const packedFiles = () => readdirSync(tiny.folder).filter((name) => name.startsWith('packed-'));
const packedFile = () => join(tiny.folder, packedFiles()[0]!);

describe('the packed file', () => {
  it('is made once and mapped afterwards', () => {
    const first = logitsOf();
    const made = statSync(packedFile());
    expect(logitsOf()).toEqual(first);
    expect(statSync(packedFile()).ino).toBe(made.ino);
    expect(made.mode & 0o777).toBe(0o444);
    expect(readdirSync(tiny.folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('is one per instruction set', () => {
    for (const instructionSet of instructionSets) logitsOf(tiny, { instructionSet });
    expect(packedFiles().length).toBe(instructionSets.length);
  });

  it.each<[string, (path: string) => void]>([
    ['truncated', (path) => truncateSync(path, statSync(path).size - 4096)],
    ['empty', (path) => truncateSync(path, 0)],
    ['longer than it was', (path) => truncateSync(path, statSync(path).size + 1)],
    ...[4096, 5000, 9999].map((at): [string, (path: string) => void] => [
      `flipped in a bit of byte ${at}`,
      (path) => {
        const bytes = readFileSync(path);
        bytes[at]! ^= 1;
        writeFileSync(path, bytes);
      },
    ]),
    [
      'flipped in its last bit',
      (path) => {
        const bytes = readFileSync(path);
        bytes[bytes.length - 1]! ^= 0x80;
        writeFileSync(path, bytes);
      },
    ],
    ['of another program', (path) => writeFileSync(path, Buffer.alloc(statSync(path).size, 'x'))],
    [
      'of another version',
      (path) => {
        const bytes = readFileSync(path);
        bytes.writeUInt32LE(bytes.readUInt32LE(8) + 1, 8);
        writeFileSync(path, bytes);
      },
    ],
  ])('is made again when it is %s', (_, damage) => {
    const first = logitsOf();
    const path = packedFile();
    const whole = readFileSync(path);
    chmodSync(path, 0o644);
    damage(path);
    expect(logitsOf()).toEqual(first);
    expect(readFileSync(path).equals(whole)).toBe(true);
  });

  it('of another instruction set under this name is made again', () => {
    const first = logitsOf();
    const path = packedFile();
    const bytes = readFileSync(path);
    bytes.write('other', 16);
    bytes.fill(0xff, 4096);
    chmodSync(path, 0o644);
    writeFileSync(path, bytes);
    expect(logitsOf()).toEqual(first);
  });

  it('is made again when the weights are newer', () => {
    logitsOf();
    const other = makeTinyNetwork({ seed: 2 });
    writeFileSync(tiny.weightsFile, readFileSync(other.weightsFile));
    utimesSync(tiny.weightsFile, new Date(), new Date(Date.now() + 5000));
    expect(logitsOf()).toEqual(logitsOf(other));
    other.remove();
  });

  it('is not made of matrices that have changed since they were built', () => {
    const bytes = readFileSync(tiny.weightsFile);
    const tensors = tiny.tensors.map((tensor) => ({
      ...tensor,
      checksum: crc32(bytes.subarray(tensor.offset, tensor.offset + tensor.byteLength)),
    }));
    const network = { ...tiny, tensors };
    expect(logitsOf(network)).toEqual(logitsOf());
    const [op] = tiny.plan.ops.flatMap((one) => (one.op === 'gatedLinear' ? [one] : []));
    const matrix = tensors.find(({ name }) => name === op!.weight)!;
    bytes[matrix.offset + matrix.byteLength - 1]! ^= 1;
    writeFileSync(tiny.weightsFile, bytes);
    utimesSync(tiny.weightsFile, new Date(), new Date(Date.now() + 5000));
    expect(() => logitsOf(network)).toThrow(
      `${tiny.weightsFile}: the bytes of ${matrix.name} are not those that were built`,
    );
    // A packed file left here would keep the next start from looking at the matrices.
    expect(packedFiles()).toEqual([]);
  });

  it('is made in pieces, which are summed up to the checksums of the matrices', () => {
    // Gate and up are 3 MB, which are several pieces, and no piece ends with a matrix.
    const large = makeTinyNetwork({ hiddenSize: 64, intermediateSize: 6001, numLayers: 1, headDim: 16 });
    const bytes = readFileSync(large.weightsFile);
    const tensors = large.tensors.map((tensor) => ({
      ...tensor,
      checksum: crc32(bytes.subarray(tensor.offset, tensor.offset + tensor.byteLength)),
    }));
    const [expected] = naiveLogits(large.plan, large.weights, [1, 2, 3], {
      kvDtype: 'f32',
      inverseFrequencies: large.inverseFrequencies,
      ropeScale: 1,
    }).slice(-1);
    for (const instructionSet of instructionSets) {
      const found = logitsOf({ ...large, tensors }, { instructionSet, threads: 3 });
      expect(greatestError([found], [expected!])).toBeLessThan(2e-3);
    }
    const matrix = tensors.find(({ name }) => name.endsWith('gateUp'))!;
    bytes[matrix.offset + matrix.byteLength / 2 + 1_200_000]! ^= 1;
    writeFileSync(large.weightsFile, bytes);
    utimesSync(large.weightsFile, new Date(), new Date(Date.now() + 5000));
    for (const packedFolder of [large.packedFolder, join(large.folder, 'missing')])
      expect(() => logitsOf({ ...large, tensors, packedFolder })).toThrow(
        `the bytes of ${matrix.name} are not`,
      );
    expect(readdirSync(large.folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    large.remove();
  });

  it('is not needed where its folder cannot be written', () => {
    const expected = logitsOf();
    const packedFolder = join(tiny.folder, 'missing', 'folder');
    expect(logitsOf({ ...tiny, packedFolder })).toEqual(expected);
    const readOnly = join(tiny.folder, 'read-only');
    mkdirSync(readOnly);
    chmodSync(readOnly, 0o555);
    expect(logitsOf({ ...tiny, packedFolder: readOnly })).toEqual(expected);
  });

  it('may be made by several processes at once', async () => {
    const script = fileURLToPath(new URL('./make-packed-file.ts', import.meta.url));
    const { plan, weightsFile, tensors, packedFolder } = tiny;
    writeFileSync(
      join(tiny.folder, 'engine.test.json'),
      JSON.stringify({ plan, weightsFile, tensors, packedFolder }),
    );
    const ends = await Promise.all(
      [1, 2, 3].map(
        () =>
          new Promise<number | null>((resolve) => {
            const child = spawn(
              process.execPath,
              ['--import', 'tsx', script, join(tiny.folder, 'engine.test.json')],
              {
                stdio: 'inherit',
              },
            );
            child.on('exit', resolve);
          }),
      ),
    );
    expect(ends).toEqual([0, 0, 0]);
    expect(packedFiles()).toHaveLength(1);
    const made = statSync(packedFile()).ino;
    const fresh = makeTinyNetwork();
    expect(logitsOf()).toEqual(logitsOf(fresh));
    fresh.remove();
    expect(statSync(packedFile()).ino).toBe(made);
  });
});
