import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadableEngine } from '../../../../engine/building/engine.js';
import { openStoredEngine } from '../../../../engine/building/stored-engine.js';
import { type NativeEngine, NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { dropFromMemory } from '../../../../tools/support/drop-from-memory.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { type TinyNetwork, TinyNetworks } from '../../../../tools/support/tiny-network.js';
import { writeExpertsGguf } from '../../../support/experts-model.js';
import { executorOptions, instructionSets } from '../../../support/native-options.js';
import { SourceEngines } from '../../../support/source-engines.js';

const networks = new TinyNetworks();
const engines = new SourceEngines();
afterAll(() => {
  networks.remove();
  engines.remove();
});

/** Experts of several pages, of which a token goes to one in each of two layers. */
const make = () =>
  networks.make({
    hiddenSize: 64,
    intermediateSize: 64,
    experts: { count: 6, used: 1, normalize: true },
  });
const FROM_DISK = { expertFraction: 0.5 };
const pageBytes = 4096;

type Options = Parameters<typeof executorOptions>[0];

const open = (engine: NativeEngine, options: Options = {}) =>
  new NativeExecutor(engine, executorOptions(options));

function batchOf(network: TinyNetwork, tokens: number[]) {
  return makeStepBatch([{ tokens, cached: 0, blocks: [0, 1], logits: 'all' }], {
    tokensPerBlock: 16,
    inverseFrequencies: network.inverseFrequencies,
  });
}

const PROMPT = Array.from({ length: 24 }, (_, i) => (i * 7) % 131);

function logitsOf(network: TinyNetwork, options: Options = {}, tokens = PROMPT): Float32Array {
  const executor = open(network, options);
  const logits = executor.forward(batchOf(network, tokens)).slice();
  executor.close();
  return logits;
}

const packedFile = ({ folder }: TinyNetwork) =>
  join(folder, readdirSync(folder).find((name) => name.startsWith('packed-'))!);

/** Has the network's packed file lie on the disk alone. */
function packedOnDisk(network: TinyNetwork, options: Options = {}): string {
  open(network, options).close();
  const file = packedFile(network);
  dropFromMemory(file);
  return file;
}

describe('experts that are read from the disk', () => {
  it.each(instructionSets)('have the bits of those in memory (%s)', (instructionSet) => {
    const network = make();
    const expected = logitsOf(network, { instructionSet });
    dropFromMemory(packedFile(network));
    expect(logitsOf(network, { instructionSet, ...FROM_DISK })).toEqual(expected);
    expect(logitsOf(make(), { instructionSet, ...FROM_DISK })).toEqual(expected);
  });

  it('have them where a GGUF is computed with as it lies', () => {
    const file = join(engines.fresh(), 'experts.gguf');
    const engine = loadableEngine(openStoredEngine(writeExpertsGguf(file)));
    const batch = makeStepBatch([{ tokens: [1, 2, 3, 4, 5, 0], cached: 0, blocks: [0], logits: 'all' }], {
      tokensPerBlock: 16,
      inverseFrequencies: Float32Array.from({ length: 64 }, (_, i) => 10_000 ** (-i / 64)),
    });
    const [expected, found] = [{}, FROM_DISK].map((options) => {
      dropFromMemory(file);
      const executor = open(engine, options);
      const logits = executor.forward(batch).slice();
      const reads = executor.expertReads();
      executor.close();
      return { logits, reads };
    });
    expect(found!.logits).toEqual(expected!.logits);
    expect(expected!.reads).toBeNull();
    expect(found!.reads!.readBytes).toBeGreaterThan(0);
    expect(found!.reads!.readBytes).toBeLessThan(statSync(file).size);
  });

  it('are not read at the start, and then those that a token goes to alone, once', () => {
    const network = make();
    packedOnDisk(network);
    const executor = open(network, FROM_DISK);
    const { bytes, bytesPerToken, countedBytes, bytesPerSecond, readBytes } = executor.expertReads()!;
    expect(bytesPerToken).toBe(bytes / 6);
    expect(bytes % pageBytes).toBe(0);
    expect(countedBytes).toBe(bytes / 2);
    expect([bytesPerSecond, readBytes]).toEqual([null, 0]);
    executor.forward(batchOf(network, [5]));
    // Elsewhere pages stay in memory.
    if (process.platform === 'linux') expect(executor.expertReads()!.readBytes).toBe(bytesPerToken);
    executor.forward(batchOf(network, [5]));
    if (process.platform === 'linux') expect(executor.expertReads()!.readBytes).toBe(bytesPerToken);
    executor.close();
  });

  it('count as far as memory has room for them', () => {
    const network = make();
    const [all, half] = [{}, FROM_DISK].map((options) => {
      const executor = open(network, options);
      const { weightBytes } = executor.memory();
      const bytes = executor.expertReads()?.bytes ?? 0;
      executor.close();
      return { weightBytes, bytes };
    });
    expect(half!.weightBytes).toBe(all!.weightBytes - half!.bytes / 2);
    const { memory, experts } = NativeExecutor.measureWithExperts(network, executorOptions());
    expect(memory.weightBytes).toBe(all!.weightBytes);
    expect(experts).toEqual({
      bytes: half!.bytes,
      bytesOfLayer: half!.bytes / 2,
      bytesPerToken: half!.bytes / 6,
    });
  });

  it('are checked when rows first go to them, all else at the start', () => {
    const network = networks.make({
      hiddenSize: 64,
      intermediateSize: 32,
      numLayers: 1,
      experts: { count: 3, used: 3, normalize: true },
    });
    const expected = logitsOf(network);
    const file = packedFile(network);
    const whole = readFileSync(file);
    let [atStart, atUse] = [0, 0];
    for (let page = pageBytes; page < whole.length; page += pageBytes) {
      const bytes = Buffer.from(whole);
      bytes[page + 17]! ^= 4;
      chmodSync(file, 0o644);
      writeFileSync(file, bytes);
      const executor = open(network, FROM_DISK);
      const batch = batchOf(network, PROMPT);
      if (readFileSync(file).equals(whole)) {
        atStart++;
        expect(executor.forward(batch)).toEqual(expected);
      } else {
        atUse++;
        expect(() => executor.forward(batch)).toThrow(
          /packed-.*: the bytes of .*(gateUp|down).* are not those that were packed/,
        );
        expect(() => statSync(file)).toThrow();
        open(network).close();
      }
      executor.close();
    }
    expect(atStart).toBeGreaterThan(2);
    expect(atUse).toBeGreaterThan(2);
  });

  it('are all checked at the start where memory holds them', () => {
    const network = make();
    const expected = logitsOf(network);
    const file = packedFile(network);
    const whole = readFileSync(file);
    for (let page = pageBytes; page < whole.length; page += 7 * pageBytes) {
      const bytes = Buffer.from(whole);
      bytes[page + 17]! ^= 4;
      chmodSync(file, 0o644);
      writeFileSync(file, bytes);
      expect(logitsOf(network)).toEqual(expected);
      expect(readFileSync(file).equals(whole)).toBe(true);
    }
  });

  it('need a folder that can be written where they are not packed yet', () => {
    const network = make();
    const packedFolder = join(network.folder, 'missing', 'folder');
    expect(() => open({ ...network, packedFolder }, FROM_DISK)).toThrow(
      /packed-.* cannot be written, from which experts .* would be read; .* room for \d+ bytes/,
    );
    mkdirSync(packedFolder, { recursive: true });
    open({ ...network, packedFolder }, FROM_DISK).close();
    expect(readdirSync(packedFolder)).toHaveLength(1);
  });
});
