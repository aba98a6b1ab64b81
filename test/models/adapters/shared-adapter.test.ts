import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../../engine/peft/adapter-fingerprint.js';
import { writeLoraTensors } from '../../../models/adapters/lora-tensors.js';
import { sharedAdapter, sharedTensorsOf } from '../../../models/adapters/shared-adapter.js';
import { randomAdapter } from '../../support/random-adapter.js';
import { readLoraTensors } from '../../support/read-lora-tensors.js';
import { TINY_BASE } from '../../support/tiny-adapter.js';

const adapter = randomAdapter(TINY_BASE, 3, { maxRank: 4 });
const shared = sharedAdapter(adapter);

describe('an adapter in shared memory', () => {
  it('has the same numbers, which are parts of one tensor', () => {
    expect(fingerprintOf(shared)).toBe(fingerprintOf(adapter));
    expect(shared.modules).toEqual(adapter.modules);
    expect(shared.tensors.weights).toEqual(writeLoraTensors(adapter).weights);
    expect(shared.tensors.config).toEqual(writeLoraTensors(adapter).config);
    const { buffer } = shared.tensors.weights;
    expect(buffer).toBeInstanceOf(SharedArrayBuffer);
    for (const { a, b } of shared.moduleLayers) expect([a.buffer, b.buffer]).toEqual([buffer, buffer]);
  });

  it('is read from its tensors without a copy, and another one is copied', () => {
    const read = readLoraTensors(shared.tensors, TINY_BASE, { maxRank: 4 });
    expect(fingerprintOf(read)).toBe(fingerprintOf(adapter));
    expect(read.moduleLayers.every(({ a }) => a.buffer === shared.tensors.weights.buffer)).toBe(true);
    const tensors = writeLoraTensors(adapter);
    const copy = readLoraTensors(tensors, TINY_BASE, { maxRank: 4 });
    tensors.weights.fill(0);
    expect(fingerprintOf(copy)).toBe(fingerprintOf(adapter));
  });

  it('keeps its memory on the way to another thread', () => {
    const clone = structuredClone(shared);
    shared.tensors.weights[0]! += 1;
    expect(clone.moduleLayers[0]!.a[0]).toBe(shared.moduleLayers[0]!.a[0]);
    expect(sharedTensorsOf(clone)?.weights[0]).toBe(shared.tensors.weights[0]);
    expect(sharedTensorsOf(adapter)).toBeUndefined();
  });
});
