import { expect, it } from 'vitest';
import {
  DTYPES,
  isEmulated,
  isQuantized,
  kernels,
  multipliesPairs,
  tables,
  tileTables,
} from './kernel-hooks.js';

it.each(tables)('the register-only loops of %s do as many operations as its tallest tile', (table) => {
  const { panelWidth, tileRows } = kernels.shape(table);
  const iterations = 16;
  for (const dtype of DTYPES) {
    const ofStep = isQuantized(dtype) ? 4 : dtype === 'bf16' && multipliesPairs(table) ? 2 : 1;
    const operations = isEmulated(table) ? 0 : 2 * iterations * panelWidth * tileRows * ofStep;
    expect(kernels.peak(table, { dtype, iterations }), dtype).toBe(operations);
  }
});

it.each(tileTables.filter((table) => table === 'trappedamx'))('the loop of tiles alone runs, %s', (table) => {
  const { panelWidth, tileRows } = kernels.shape(table);
  const operations = 2 * 64 * panelWidth * tileRows * 4;
  expect(kernels.peak(table, { dtype: 'int8', iterations: 64 })).toBe(operations);
});
