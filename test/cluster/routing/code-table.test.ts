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
