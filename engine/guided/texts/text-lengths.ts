import { spend } from '../reading-work.js';
import type { TextSet } from './text-set.js';

/** Least and greatest number of characters of a set's texts, or bounds around them; null: no bound is known. */
export function lengthsOf(set: TextSet): [number, number | null] {
  spend(1);
  switch (set.kind) {
    case 'chars':
      return [1, 1];
    case 'text': {
      const length = [...set.text].length;
      return [length, length];
    }
    case 'seq':
      return set.items
        .map(lengthsOf)
        .reduce<[number, number | null]>(
          ([least, most], [min, max]) => [least + min, most === null || max === null ? null : most + max],
          [0, 0],
        );
    case 'alt': {
      const all = set.items.map(lengthsOf);
      const most = all.map(([, max]) => max);
      return [
        Math.min(...all.map(([min]) => min)),
        most.some((max) => max === null) ? null : Math.max(...(most as number[])),
      ];
    }
    case 'and': {
      const all = set.items.map(lengthsOf);
      const most = all.map(([, max]) => max).filter((max) => max !== null);
      return [Math.max(...all.map(([min]) => min)), most.length === 0 ? null : Math.min(...most)];
    }
    case 'repeat': {
      const [min, max] = lengthsOf(set.item);
      return [min * set.min, max === 0 ? 0 : max === null || set.max === null ? null : max * set.max];
    }
    case 'not':
      return [0, null];
  }
}
