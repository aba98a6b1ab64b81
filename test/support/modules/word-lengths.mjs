// The worker of a service in tests: lengths of words, and what goes wrong by the word's name.
import { existsSync } from 'node:fs';

class WordError extends Error {
  name = 'WordError';
  code = 'E_OWN';
  unsendable = () => {};
}

export default class WordLengths {
  constructor({ factor = 1, refuses = false } = {}) {
    if (refuses) throw new Error('There is no such dictionary.');
    this.factor = factor;
  }

  preprocess(words) {
    return words.map((word) => ({ word, length: word.length }));
  }

  async transform(rows) {
    const { word } = rows[0];
    if (word === 'throw') throw new RangeError('The word is too long.');
    if (word === 'limit') {
      // Imported here, since every worker of these tests would take a second longer to start.
      const { QueueFullError } = await import('skein');
      throw new QueueFullError(7, { retryAfterMs: 250 });
    }
    if (word === 'coded') throw Object.assign(new TypeError('No word.'), { code: 'E_WORD' });
    if (word === 'own') throw new WordError('Not mine.');
    if (word === 'odd') throw 'a text';
    if (word === 'exit') process.exit(4);
    if (word === 'hang') for (;;);
    if (word === 'function') return rows.map(() => () => {});
    if (word === 'few') return [];
    if (word === 'none') return undefined;
    if (word.startsWith('wait:')) {
      while (!existsSync(word.slice(5))) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return Float64Array.from(rows, ({ length }) => length * this.factor);
  }

  /** Sees what came and what became of it. */
  postprocess(rows, lengths) {
    if (!(lengths instanceof Float64Array)) return lengths;
    return { sizes: lengths, first: rows[0].word, count: rows.length, pid: process.pid };
  }
}
