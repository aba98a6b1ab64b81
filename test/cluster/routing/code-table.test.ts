import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CodeTable } from '../../../cluster/routing/code-table.js';
import { draws } from '../../support/scale.js';

it('has what was put in and not taken out, also where many have one home', () => {
  // Few codes, whose last four bits are fewer still: entries stand in long rows, which wrap round the end.
  const code = fc.constantFrom(14, 15, 30, 31, 47, -1, -2, 1, 17);
  const step = fc.record({ code, isPut: fc.boolean(), which: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), (steps) => {
      const table = new CodeTable();
      const there: { code: number; value: number }[] = [];
      const slotsOf = (wanted: number) => {
        const slots: number[] = [];
        for (let slot = table.find(wanted); slot >= 0; slot = table.findNext(slot)) slots.push(slot);
        return slots;
      };
      for (const [value, { code: one, isPut, which }] of steps.entries()) {
        if (isPut || there.length === 0) {
          table.add(one, value);
          there.push({ code: one, value });
        } else {
          const [gone] = there.splice(which % there.length, 1);
          const slot = slotsOf(gone!.code).find((at) => table.valueAt(at) === gone!.value);
          table.remove(slot!);
        }
        expect(table.size).toBe(there.length);
        // Also of those that have not moved yet from a table that was full.
        expect(slotsOf(one).map((slot) => table.valueAt(slot))).toHaveLength(
          there.filter(({ code: other }) => other === one).length,
        );
      }
      for (const wanted of new Set(steps.map((one) => one.code))) {
        const values = slotsOf(wanted).map((slot) => table.valueAt(slot));
        const expected = there.flatMap((one) => (one.code === wanted ? [one.value] : []));
        expect(values.sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
      }
    }),
    { seed: 26, numRuns: draws(100) },
  );
});

it('has thousands while they move to larger tables, each once', () => {
  const table = new CodeTable();
  const codeOf = (value: number) => Math.imul(value, 0x9e3779b1) ^ (value >> 3);
  const foundAs = (code: number, value: number) => {
    let slot = table.find(code);
    while (slot >= 0 && table.valueAt(slot) !== value) slot = table.findNext(slot);
    return slot < 0 ? null : table.valueAt(slot);
  };
  for (let value = 0; value < 5000; value += 1) {
    table.add(codeOf(value), value);
    // One that came long ago, and may lie in either table.
    const old = value >> 1;
    expect(foundAs(codeOf(old), old)).toBe(old % 7 === 3 && old < value - 2500 ? null : old);
    const gone = value - 2500;
    if (gone < 0 || gone % 7 !== 3) continue;
    let slot = table.find(codeOf(gone));
    while (table.valueAt(slot) !== gone) slot = table.findNext(slot);
    table.remove(slot);
    expect(foundAs(codeOf(gone), gone)).toBeNull();
  }
  for (let value = 0; value < 2500; value += 1)
    expect(foundAs(codeOf(value), value)).toBe(value % 7 === 3 ? null : value);
});
