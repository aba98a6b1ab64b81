import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Columns, ElementType } from '../../../base/columns.js';
import { PACKED_COLUMNS, ROPE_COLUMNS } from '../../../engine/packed-call/packed-batch.js';
import {
  CANDIDATE_COLUMNS,
  OUTPUT_COLUMNS,
  SAMPLING_COLUMNS,
} from '../../../engine/packed-call/sampling-batch.js';

const path = new URL('../../../engine/executors/native/executor/js_batch.cpp', import.meta.url);
const source = readFileSync(path, 'utf8');

const TYPES: Readonly<Record<string, ElementType>> = {
  'integers(': 'i32',
  'array<int32_t>(': 'i32',
  'floats(': 'f32',
  'array<float>(': 'f32',
  'array<const uint64_t>(': 'u64',
};

/** Columns that the addon reads of the object of this name, with the element type of each. */
function readOf(object: string): [string, ElementType | undefined][] {
  const reads = source.matchAll(
    new RegExp(`\\b${object}\\.((?:integers|floats|array<[^>]*>)\\()"(\\w+)"`, 'g'),
  );
  return Array.from(reads, ([, how, name]) => [name!, TYPES[how!]]);
}

function typesOf(...tables: Columns[]): Record<string, ElementType> {
  const columns = tables.flatMap((table) => Object.entries(table));
  return Object.fromEntries(columns.map(([name, { type }]) => [name, type]));
}

describe('the columns that the addon reads by name', () => {
  it('are all columns of a batch, and of their types', () => {
    // No columns: a batch has them where a sequence or the network needs them.
    const more = {
      ...{ tokenTypes: 'i32', adapterSlots: 'i32', gridPositions: 'i32', pictures: 'i32', places: 'i32' },
      ...{ segments: 'i32' },
      ...{ placeShares: 'f32', rowInputs: 'f32', keptRows: 'f32' },
    } as const;
    const wanted = { ...typesOf(PACKED_COLUMNS, ROPE_COLUMNS), ...more };
    expect(Object.fromEntries(readOf('batch'))).toEqual(wanted);
  });

  it('are all columns of the sampling parameters, and of their types', () => {
    expect(Object.fromEntries(readOf('sampling'))).toEqual(typesOf(SAMPLING_COLUMNS, CANDIDATE_COLUMNS));
  });

  it('are all columns of what sampling gives back, and of their types', () => {
    expect(Object.fromEntries(readOf('output'))).toEqual(typesOf(OUTPUT_COLUMNS));
  });
});
