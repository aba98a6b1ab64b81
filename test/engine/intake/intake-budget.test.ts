import { expect, it } from 'vitest';
import type { InferenceRequest } from '../../../callbacks/types.js';
import { numTaken } from '../../../engine/intake/intake-budget.js';

const request = (values: number): InferenceRequest => ({
  requestId: 1n,
  inputs: { logit_bias: { shape: [1, values], data: new Float32Array(values) } },
});
const requests = (count: number, values: number) => Array.from({ length: count }, () => request(values));

it('takes requests as long as their values are few', () => {
  expect(numTaken(requests(64, 1000))).toBe(64);
  expect(numTaken(requests(64, 100_000))).toBe(2);
  expect(numTaken([...requests(3, 50_000), request(200_000)])).toBe(3);
});

it('takes one however long it is, and what is no request at all', () => {
  expect(numTaken(requests(3, 1_000_000))).toBe(1);
  const strange = [
    { requestId: 1n, inputs: null },
    { requestId: 2n },
    { requestId: 3n, inputs: { x: null } },
  ];
  expect(numTaken(strange as unknown as InferenceRequest[])).toBe(3);
  expect(numTaken([])).toBe(0);
});
